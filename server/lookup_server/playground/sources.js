// What proposed a token, in families that a reader can tell apart. The service's own names are finer.

export const FAMILIES = [
  { id: "copied", name: "copied", about: "the file goes on where the answer stands in it", sources: ["start", "continue"] },
  {
    id: "found",
    name: "found again",
    about: "after a change, the place where the file goes on",
    sources: ["insert", "substitute", "skip", "near", "resume", "alike"],
  },
  { id: "moved", name: "from further off", about: "another place of the file", sources: ["ahead", "behind"] },
  {
    id: "changed",
    name: "changed alike",
    about: "the file with a change put in that was made or announced elsewhere, such as a new name",
    sources: ["renamed", "kept", "indented", "replaced", "syntax"],
  },
  {
    id: "around",
    name: "from around it",
    about: "the instruction, other files, the answer itself, or what the model nearly said before",
    sources: ["elsewhere", "answer", "successor", "grammar"],
  },
  { id: "other", name: "guessed otherwise", about: "another kind of guess", sources: [] },
  { id: "model", name: "the model's own", about: "not guessed: the model came up with it", sources: [""] },
];

const BY_SOURCE = new Map(FAMILIES.flatMap((family) => family.sources.map((source) => [source, family])));
const OTHER = FAMILIES.find((family) => family.id === "other");

/** The family of a source as the service names it; the empty name is the model itself. */
export function familyOf(source) {
  return BY_SOURCE.get(source) ?? OTHER;
}

// The recordings that all clients are held to, as files of a folder and as what a service replays.
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const PLACE = fileURLToPath(new URL("../../../fixtures", import.meta.url));

export const RECORDINGS = readdirSync(PLACE).map((name) => {
  const recording = JSON.parse(readFileSync(join(PLACE, name), "utf-8"));
  return { name: name.replace(/\.json$/, ""), ...recording };
});

/** Empties a folder and puts in the files as they were before the edits. */
export function writeBases(folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const { name, base } of RECORDINGS) {
    writeFileSync(join(folder, `${name}.py`), base);
  }
}

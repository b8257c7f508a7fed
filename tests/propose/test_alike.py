from __future__ import annotations

import re
from collections.abc import Sequence

from hypothesis import example, given, settings
from hypothesis import strategies as st

from lookup_spec.propose.alike import Alike
from lookup_spec.propose.guess import Guess, Kind
from lookup_spec.propose.prompt import Prompt, Reference
from lookup_spec.propose.proposer import LookupProposer
from lookup_spec.propose.shaped import Shaped, ShapedSegment
from lookup_spec.propose.walk import walk


class Toy:
    """Tokens are words with the space before them, cut after three letters, and single other characters."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}

    def encode(self, text: str) -> list[int]:
        pieces = re.findall(r" ?\w{1,3}|.|\n", text)
        return [self._ids.setdefault(piece, len(self._ids)) for piece in pieces]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        texts = list(self._ids)
        return [texts[token] for token in ids]


def guesses(base: str, *parts: str, prompt: str = "Do it.\n") -> tuple[list[str], list[Guess]]:
    """What is guessed behind an answer that comes in parts, as texts and as it is."""
    toy = Toy()
    ids, known = toy.encode(base), toy.encode(prompt)
    alike = Alike(ShapedSegment(toy.pieces(ids)), ids, known, toy)
    found: list[Guess] = []
    for part in parts:
        known += toy.encode(part)
        found = alike.guesses(0)
    return ["".join(toy.pieces(guess.text[guess.place :])) for guess in found], found


GETTER = "def get_name(user):\n    name = user.names[0]\n    return name.strip()\n"


def test_a_function_like_another() -> None:
    """After the head of a function like another, the other's body comes with the new names."""
    texts, (guess, *_) = guesses(GETTER, "def get_mail(account):\n    mail = account.")
    assert texts[0].startswith("names[0]\n    return mail.strip()\n")
    assert (guess.kind, guess.length) == (Kind.SYNTAX, 14)


def test_a_name_that_has_begun_is_completed() -> None:
    """Where a token ends within a name, the rest of it comes."""
    texts, _ = guesses(GETTER, "def get_mail(account):\n    mail = acc")
    assert texts[0].startswith("ount.names[0]\n    return mail")


def test_indentation_that_has_begun_is_completed() -> None:
    """Where a token ends within the space before a line, the rest of it comes."""
    texts, _ = guesses(GETTER, "def get_mail(account):\n")
    assert texts[0].startswith("    name = account.names[0]")


def test_the_answer_is_a_model_for_itself() -> None:
    """What was written a moment ago is a model, too, in whatever parts it came."""
    for parts in ([GETTER, "def get_mail(account):\n    mail = account."], [*GETTER, "def get_mail(account):\n    "]):
        texts, _ = guesses("", *parts)
        assert "account.names[0]\n    return " in "mail = account." + texts[0]


def test_tokens_are_copied_where_no_name_changes() -> None:
    """Where the names that differ do not come again, the base itself is gone on with."""
    base = "x = [1, 2, 3]\ny = {5: 6}\nprint(7)\n"
    _, (guess, *_) = guesses(base, "z = [1, 2, 3]\n")
    toy = Toy()
    assert list(guess.text[guess.place :]) == toy.encode(base)[guess.place :]
    assert "".join(toy.pieces(guess.text[guess.place :])) == "y = {5: 6}\nprint(7)\n"


def test_what_stands_there_throughout_is_left_to_others() -> None:
    """A place before which exactly the latest words stand is found by its tokens anyway."""
    assert guesses(GETTER, GETTER[: GETTER.index("names")])[1] == []


def test_little_that_is_alike_is_nothing() -> None:
    """A few words of the same shape say nothing."""
    assert guesses("a = b\nc = d\n", "e = f")[1] == []


def slow_places(text: Shaped, latest: Shaped) -> list[str]:
    """Every way on that a text offers by what stands before its words, names changed one after another.

    However many of the words before are looked at: of a long answer only the end is read.
    """
    ways = []
    for word in range(8, len(text)):
        length = 0
        while length < min(40, word, len(latest)) and text.shapes[word - 1 - length] == latest.shapes[-1 - length]:
            length += 1
        ways += [slow_way(text, word, latest, read) for read in range(8, length + 1)]
    return [way for way in ways if way is not None]


def slow_way(text: Shaped, word: int, latest: Shaped, length: int) -> str | None:
    pairs = list(zip(text.words[word - length : word], latest.words[len(latest) - length :], strict=True))
    if all(their == our for their, our in pairs):
        return None
    bound = {their: our for their, our in pairs[:-1] if re.match(r"\w", their)}
    their, our = pairs[-1]
    rest = ""
    if bound.get(their, their).startswith(our) and bound.get(their, their) != our:
        rest = bound.get(their, their)[len(our) :]
    elif re.match(r"\w", their):
        bound[their] = our
    return rest + "".join(bound.get(other, other) for other in text.words[word:])


lines = st.sampled_from(
    ["a = f(b)\n", "    c = g(d)\n", "a = f(\n", "if a:\n  b = a\n", "x1, y = 1\n", "ab = abcdef\n"]
)
texts = st.lists(lines, max_size=8).map("".join)
# Longer than what is read of an answer that comes at once.
LONG = "    c = g(d)\na = f(\na = f(b)\na = f(b)\n" + "    c = g(d)\n" + "a = f(b)\n" * 3


@settings(max_examples=300)
@example("", [LONG, "a = f(\na = f(b)\n"], 0)
@given(texts, st.lists(texts, min_size=1, max_size=4), st.integers(0, 12))
def test_every_guess_is_one_that_a_search_through_all_finds(base: str, parts: list[str], cut: int) -> None:
    """Whatever base and answer: each guess is the way on from a place that is alike, with the right names."""
    answer = "".join(parts)
    parts = [*parts[:-1], parts[-1][: len(parts[-1]) - cut]] if cut else parts
    found, kinds = guesses(base, *parts)
    answer = "".join(parts)
    ways = slow_places(Shaped([base]), Shaped([answer])) + slow_places(Shaped([answer]), Shaped([answer]))
    for text in found:
        assert any(way.startswith(text[:20]) or text.startswith(way) for way in ways), (text, ways)
    assert all(guess.kind == Kind.SYNTAX and guess.length >= 8 for guess in kinds)


def steps(base: str, answer: str, *, renaming: bool) -> tuple[int, set[str]]:
    """Forward passes for an answer, and what proposed its tokens."""
    toy = Toy()
    ids, written = toy.encode(base), toy.encode(answer)
    proposer = LookupProposer(retokenizer=toy if renaming else None)
    proposer.begin(Prompt((*toy.encode("Edit.\n"), *ids), references=(Reference(tuple(ids), "prediction"),)))
    done, count, sources = 0, 0, set[str]()
    while done < len(written):
        tree = proposer.propose(32)
        coming = iter(written[done:])
        taken = walk(tree, lambda _: next(coming, -1))  # noqa: B023
        sources.update(tree.sources[node] for node in taken.path[1:])
        proposer.observe(written[done : done + len(taken.tokens)])
        done, count = done + len(taken.tokens), count + 1
    return count, sources


def test_steps_are_saved_and_accounted() -> None:
    """New functions like one that is there take fewer passes, by tokens whose source is told."""
    names = [("mail", "account"), ("town", "address"), ("year", "birthday")]
    new = [GETTER.replace("name", one).replace("user", other) for one, other in names]
    base = GETTER + "\n\nmain(1)\n"
    answer = "\n\n".join([GETTER, *new]) + "\n\nmain(1)\n"
    with_names, sources = steps(base, answer, renaming=True)
    without, _ = steps(base, answer, renaming=False)
    assert "syntax" in sources
    assert with_names < without

"""Where the base may go on although nothing matches: places that end as the text does."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from hypothesis import given, settings
from hypothesis import strategies as st

from lookup_spec.propose.base import Base
from lookup_spec.propose.ending import Ending, Endings
from lookup_spec.propose.guess import Guess, Kind

TEXTS = ["a", " b", "\n", ";\n  ", "(", "  "]
ENDS = [Ending.WORD, Ending.WORD, Ending.LINE, Ending.LINE, Ending.MARK, Ending.SPACE]


class Fixed:
    """Six tokens."""

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [TEXTS[token] for token in ids]

    def encode(self, text: str) -> list[int]:
        raise AssertionError(f"{text!r} need not be encoded")


tokens = st.lists(st.sampled_from([0, 1, 1, 2, 3, 4, 5]), max_size=120)
moves = st.lists(st.tuples(st.sampled_from(["follow", "leave", "jump"]), st.integers(1, 20)), max_size=8)


def moved(ids: list[int], low: int, moves: list[tuple[str, int]]) -> tuple[Base, list[int]]:
    """A base along which an answer went, left it and came back elsewhere; and that answer."""
    base, known = Base(ids, low, Endings(Fixed())), [4]
    for move, count in moves:
        if move == "leave":
            known += [count % len(TEXTS)] * count
            base.leave(count)
            continue
        at = base.cursor if base.gap == 0 and move == "follow" else (base.cursor * 7 + count) % max(1, len(ids))
        depth = min(count, len(ids) - at)
        if depth <= 0:
            continue
        known += ids[at : at + depth]
        if base.gap == 0 and move == "follow":
            base.follow(Guess(Kind.CONTINUE, base.ids, at, base.run, 0), depth)
        else:
            base.jump(Guess(Kind.NEAR, base.ids, at, 1, 0), depth, known, len(known))
    return base, known


def slow_places(base: Base, low: int, known: list[int]) -> list[tuple[int, int]]:
    """All places of the base, tried one by one: those that count, with their numbers, in order."""
    ids, (cursor, *anchors) = base.ids, base.pivots()
    ending = ENDS[known[-1]]
    same = [place for place in range(1, len(ids)) if ENDS[ids[place - 1]] == ending]
    if ending != Ending.LINE:
        return [(place, n) for n, place in enumerate(islice((p for p in same if cursor < p < cursor + 16), 3))]
    found = []
    for row, pivot in enumerate([cursor, *anchors[-1:]]):
        begun = [place for place in same if low < place and pivot - 24 < place <= pivot]
        after = [place for place in same if low < place and pivot < place < pivot + 60]
        found += [(begun[-1], 4 * row)] if begun else []
        found += [(place, 4 * row + n) for n, place in enumerate(after[:3], 1)]
    return found


def slow_matched(known: list[int], ids: list[int], place: int) -> int:
    return max(n for n in range(min(40, place, len(known)) + 1) if ids[place - n : place] == known[len(known) - n :])


@settings(max_examples=150)
@given(tokens, st.integers(0, 3), moves)
def test_places_that_end_alike_are_those_that_a_search_finds(
    ids: list[int], low: int, moves: list[tuple[str, int]]
) -> None:
    """Off the base, the next three places that end like the text are guessed unless they are anyway; for line ends also
    the line in which the base was left, and the same around where it was left before."""
    low = min(low, len(ids))
    base, known = moved(ids, low, moves)
    found = [guess for guess in base.guesses(known) if guess.kind == Kind.ALIKE]
    if base.gap == 0:
        assert found == []
        return
    taken = {base.cursor, *([base.cursor + base.gap] if base.gap <= 16 else []), *([base.cursor + 1] * (base.gap > 1))}
    bucket = next(n for n, least in [(6, 30), (5, 10), (4, 6), (3, 4), (2, 3), (1, 2), (0, 0)] if base.gap >= least)
    expected: dict[int, tuple[int, int]] = {}
    for place, number in slow_places(base, low, known):
        if place not in taken and place < len(ids):
            expected.setdefault(place, (slow_matched(known, ids, place), 7 * number + bucket))
    assert {guess.place: (guess.length, guess.detail) for guess in found} == expected
    assert len(found) == len(expected)


@given(tokens, moves)
def test_cursor_guesses_tell_whether_text_and_base_end_alike(ids: list[int], moves: list[tuple[str, int]]) -> None:
    """Each guess at the cursor is of its place, with the tokens that match before it and whether the endings agree."""
    base, known = moved(ids, 0, moves)
    shifts = {Kind.INSERT: 0, Kind.SUBSTITUTE: base.gap, Kind.SKIP: 1}
    guesses = [guess for guess in base.guesses(known) if guess.kind in shifts]
    for guess in guesses:
        assert guess.place == base.cursor + shifts[guess.kind]
        assert guess.length == slow_matched(known, ids, guess.place)
        alike = guess.place > 0 and ENDS[ids[guess.place - 1]] == ENDS[known[-1]]
        assert guess.detail % 2 == alike
    if base.gap and base.cursor < len(ids):
        assert Kind.INSERT in {guess.kind for guess in guesses}

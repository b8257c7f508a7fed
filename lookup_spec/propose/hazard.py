"""How often guesses of each kind come true, learned by counting."""

from __future__ import annotations

from lookup_spec.propose.guess import Guess, Kind

_STRENGTH = 4.0
DEPTH_BUCKETS = (0, 0, 1, 2, 3, 3, 4, 4, 4, 5, 5, 5, 5, 5, 5, 5, 5, *[6] * 16, *[7] * 32)
"""Bucket of each depth in a chain; deeper is the last one."""
_LENGTH_BUCKETS = (0, 1, 2, 3, 4, 5, 6, 7, *[8] * 4, *[9] * 8, *[10] * 20, *[11] * 40)


def length_bucket(length: int) -> int:
    """Matched lengths that are counted together."""
    return _LENGTH_BUCKETS[length] if length < len(_LENGTH_BUCKETS) else 12


def depth_bucket(depth: int) -> int:
    """Depths in a chain that are counted together."""
    return DEPTH_BUCKETS[depth] if depth < len(DEPTH_BUCKETS) else 7


class Hazards:
    """Counts of guesses by what was known when they were made.

    Three questions are counted: does the first token of a guess come, by kind, matched length and detail; does it
    come although better guesses failed, by rank; and does the chain behind it go on, by kind, matched length and
    depth. An estimate starts at a prior worth a few observations and moves to what is seen.

    Holds counts only, never tokens, so several requests may share one object.
    """

    def __init__(self) -> None:
        self._first: dict[tuple[int, int, int], list[float]] = {}
        self._ranked: dict[tuple[int, int], list[float]] = {}
        self._further: dict[tuple[int, int], list[list[float]]] = {}

    def first(self, guess: Guess) -> float:
        """Probability that the guess's first token comes, whatever else is guessed."""
        counts = self._first_counts(guess)
        return counts[0] / counts[1]

    def ranked(self, rank: int, alone: float) -> float:
        """Probability that a guess of ``alone`` comes, given that the ``rank`` better ones do not."""
        if rank == 0:
            return alone
        counts = self._ranked_counts(rank, alone)
        return counts[0] / counts[1]

    def further(self, kind: Kind, length: int) -> list[list[float]]:
        """Counts ``[came, tried]`` by depth bucket, of the next token of a chain given all before it."""
        key = (kind, length_bucket(length))
        rows = self._further.get(key)
        if rows is None:
            rows = self._further[key] = [[0.85 * _STRENGTH, _STRENGTH] for _ in range(8)]
        return rows

    def count_first(self, guess: Guess, came: bool) -> None:
        counts = self._first_counts(guess)
        counts[0] += came
        counts[1] += 1.0

    def count_ranked(self, rank: int, alone: float, came: bool) -> None:
        if rank:
            counts = self._ranked_counts(rank, alone)
            counts[0] += came
            counts[1] += 1.0

    def count_further(self, guess: Guess, depth: int, missed: bool) -> None:
        """Takes in that ``depth`` tokens of a chain came, at least one, and whether the next did not."""
        rows = self.further(guess.kind, guess.length)
        for place in range(1, min(depth, len(DEPTH_BUCKETS))):
            row = rows[DEPTH_BUCKETS[place]]
            row[0] += 1.0
            row[1] += 1.0
        if missed:
            rows[depth_bucket(depth)][1] += 1.0

    def _first_counts(self, guess: Guess) -> list[float]:
        key = (guess.kind, length_bucket(guess.length), guess.detail)
        counts = self._first.get(key)
        if counts is None:
            counts = self._first[key] = [_prior(guess) * _STRENGTH, _STRENGTH]
        return counts

    def _ranked_counts(self, rank: int, alone: float) -> list[float]:
        key = (min(rank, 9), int(alone * 20) if alone > 0.1 else int(alone * 100) - 50)
        counts = self._ranked.get(key)
        if counts is None:
            counts = self._ranked[key] = [alone * 0.7 * _STRENGTH, _STRENGTH]
        return counts


def _prior(guess: Guess) -> float:
    if guess.kind in (Kind.CONTINUE, Kind.RENAMED):
        return 0.9
    if guess.kind == Kind.KEPT:
        return 0.1
    if guess.kind in (Kind.INSERT, Kind.SUBSTITUTE, Kind.SKIP):
        return 0.1 + 0.05 * min(guess.length, 8)
    return min(0.95, 0.15 + 0.1 * guess.length)

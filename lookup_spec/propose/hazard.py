"""How often guesses of each kind come true, learned by counting."""

from __future__ import annotations

import json
from collections.abc import Hashable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

from lookup_spec.propose.guess import Guess, Kind

DEPTH_BUCKETS = (0, 0, 1, 2, 3, 3, 4, 4, 4, *[5] * 8, *[6] * 16, *[7] * 32)
"""Depths in a chain that are counted together; deeper ones are in the last bucket."""

_LENGTH_BUCKETS = (0, 1, 2, 3, 4, 5, 6, 7, *[8] * 4, *[9] * 8, *[10] * 20, *[11] * 40)
_ROWS = DEPTH_BUCKETS[-1] + 1
_RANKS = 9
_UNSEEN = 4.0
_REMEMBERED = 40.0

Counts = list[float]
"""How often a guess came true, and how often it was made."""

_Key = TypeVar("_Key", bound=Hashable)
_Tables = tuple[dict[tuple[int, int, int], Counts], dict[tuple[int, int], Counts], dict[tuple[int, int], list[Counts]]]


class Hazards:
    """Counts of guesses, by what was known when they were made.

    Three questions are counted: does the first token of a guess come, by kind, matched length and detail;
    does it come although better guesses fail, by rank; and does the chain behind it go on, by kind, matched
    length and depth. Counts start from those that come with the package (or from rough guesses where these
    have none) and move to what is seen.

    Holds counts only, never tokens. Requests may share one object, but not those of different tenants: what
    one has counted shows in how much is drafted for the other. Not for several threads.

    Args:
        blank: start from rough guesses only.
    """

    def __init__(self, *, blank: bool = False) -> None:
        self._shipped: _Tables = ({}, {}, {}) if blank else _shipped()
        self._first: dict[tuple[int, int, int], Counts] = {}
        self._ranked: dict[tuple[int, int], Counts] = {}
        self._further: dict[tuple[int, int], list[Counts]] = {}

    def first(self, guess: Guess) -> float:
        """Probability that the guess's first token comes, whatever else is guessed."""
        came, tried = self._first_counts(guess)
        return came / tried

    def ranked(self, rank: int, alone: float) -> float:
        """Probability that a guess of probability ``alone`` comes, given that the ``rank`` better ones do
        not."""
        if rank == 0:
            return alone
        came, tried = self._ranked_counts(rank, alone)
        return came / tried

    def further(self, kind: Kind, length: int) -> list[Counts]:
        """By depth bucket: how often the next token of a chain came, given that all before it did."""
        key = (kind, _LENGTH_BUCKETS[length] if length < len(_LENGTH_BUCKETS) else 12)
        rows = self._further.get(key)
        if rows is None:
            shipped = self._shipped[2].get(key)
            rows = self._further[key] = [list(row) for row in shipped or [[0.85 * _UNSEEN, _UNSEEN]] * _ROWS]
        return rows

    def count_first(self, guess: Guess, came: bool) -> None:
        """Takes in whether a guess's first token came."""
        _count(self._first_counts(guess), came)

    def count_ranked(self, rank: int, alone: float, came: bool) -> None:
        """Takes in whether a guess came when the ``rank`` better ones had failed."""
        if rank:
            _count(self._ranked_counts(rank, alone), came)

    def count_further(self, guess: Guess, depth: int, missed: bool) -> None:
        """Takes in that ``depth`` tokens of a chain came, at least one, and whether the next did not."""
        rows = self.further(guess.kind, guess.length)
        for bucket in DEPTH_BUCKETS[1:depth]:
            row = rows[bucket]
            row[0] += 1.0
            row[1] += 1.0
        if missed:
            rows[DEPTH_BUCKETS[min(depth, len(DEPTH_BUCKETS) - 1)]][1] += 1.0

    def _first_counts(self, guess: Guess) -> Counts:
        kind, _, _, length, detail = guess
        key = (kind, _LENGTH_BUCKETS[length] if length < len(_LENGTH_BUCKETS) else 12, detail)
        counts = self._first.get(key)
        if counts is None:
            counts = self._first[key] = _start(self._shipped[0], key, _rough(guess))
        return counts

    def _ranked_counts(self, rank: int, alone: float) -> Counts:
        key = (min(rank, _RANKS), int(alone * 20) if alone > 0.1 else int(alone * 100) - 50)
        counts = self._ranked.get(key)
        if counts is None:
            counts = self._ranked[key] = _start(self._shipped[1], key, alone * 0.7)
        return counts

    def save(self, path: Path) -> None:
        """Writes the counts as JSON, scaled down so that each table entry is worth a few dozen
        observations."""
        tables: dict[str, list[list[object]]] = {
            "first": [[*key, *_scaled(counts)] for key, counts in sorted(self._first.items())],
            "ranked": [[*key, *_scaled(counts)] for key, counts in sorted(self._ranked.items())],
            "further": [[*key, [_scaled(row) for row in rows]] for key, rows in sorted(self._further.items())],
        }
        lines = [f'"{name}": [\n{_lines(rows)}\n]' for name, rows in tables.items()]
        path.write_text("{" + ",\n".join(lines) + "}\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Hazards:
        """Reads what :meth:`save` wrote.

        Raises:
            ValueError: the file holds something else.
        """
        hazards = cls(blank=True)
        hazards._shipped = _parse(path.read_text(encoding="utf-8"))
        return hazards


def _count(counts: Counts, came: bool) -> None:
    counts[0] += came
    counts[1] += 1.0


def _start(shipped: dict[_Key, Counts], key: _Key, rough: float) -> Counts:
    known = shipped.get(key)
    return [rough * _UNSEEN, _UNSEEN] if known is None else list(known)


def _rough(guess: Guess) -> float:
    if guess.kind in (Kind.CONTINUE, Kind.RENAMED):
        return 0.9
    if guess.kind in (Kind.INSERT, Kind.SUBSTITUTE, Kind.SKIP, Kind.KEPT):
        return 0.1 + 0.05 * min(guess.length, 8)
    return min(0.95, 0.15 + 0.1 * guess.length)


def _scaled(counts: Counts) -> Counts:
    came, tried = counts
    factor = min(1.0, _REMEMBERED / tried)
    return [round(came * factor, 3), round(tried * factor, 3)]


def _lines(rows: list[list[object]]) -> str:
    return ",\n".join(json.dumps(row) for row in rows)


def _parse(text: str) -> _Tables:
    tables = json.loads(text)
    try:
        return (
            {(kind, length, detail): [came, tried] for kind, length, detail, came, tried in tables["first"]},
            {(rank, alone): [came, tried] for rank, alone, came, tried in tables["ranked"]},
            {(kind, length): [list(row) for row in rows] for kind, length, rows in tables["further"]},
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"these are no counts of guesses: {error}") from error


@cache
def _shipped() -> _Tables:
    return _parse((files("lookup_spec.propose") / "hazards.json").read_text(encoding="utf-8"))

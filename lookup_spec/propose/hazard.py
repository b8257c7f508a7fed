"""How often guesses of each kind come true, learned by counting."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from lookup_spec.propose.counts import Counts, Key, Tables, loads
from lookup_spec.propose.ending import Ending
from lookup_spec.propose.guess import Guess, Kind

DEPTH_BUCKETS = (0, 0, 1, 2, 3, 3, 4, 4, 4, *[5] * 8, *[6] * 16, *[7] * 32)
"""Depths in a chain that are counted together; deeper ones are in the last bucket."""

QUESTIONS = ("first", "ranked", "parted", "further")
"""What is counted, by name."""

_LENGTH_BUCKETS = (0, 1, 2, 3, 4, 5, 6, 7, *[8] * 4, *[9] * 8, *[10] * 20, *[11] * 40)
_ROWS = DEPTH_BUCKETS[-1] + 1
_RANKS = 9
_UNSEEN = 4.0
_BORROWED = 10.0
_CHANGED = (Kind.RENAMED, Kind.INDENTED, Kind.REPLACED)
_DETAILED = (Kind.START, *_CHANGED, Kind.KEPT)
_REACHES = (0.9, 0.3, 0.2, 0.8, 0.8, 0.55, 0.55, 0.35)
_SAID = (0.0, 0.035, 0.075, 0.15, 0.27, 0.42, 0.57, 0.72, 0.85, 0.935, 0.985)
_TRUST = (0.2, 0.55, 0.95)


class Hazards:
    """Counts of guesses, by what was known when they were made.

    Four questions are counted: does the first token of a guess come, by kind, matched length, detail and what the
    text ends with; does it come although better guesses fail, by rank; does the chain behind it go on, by kind,
    matched length, depth and what the text ended with; and, where chains part that agreed before, does the next one
    go on if better ones do not. Counts start from given ones and move to what is seen. Where those have none, they
    start from the ones of a shorter key, if the question has them, or from a rough guess.

    Holds counts only, never tokens. Requests may share one object, but not those of different tenants: what
    one has counted shows in how much is drafted for the other. Not for several threads.

    Args:
        start: counts to start from; not changed. None takes those that come with the package.
    """

    def __init__(self, start: Tables | None = None) -> None:
        tables = shipped() if start is None else start
        self._start = {name: tables.get(name, {}) for name in QUESTIONS}
        self._begun: Tables = {name: {} for name in QUESTIONS}
        self._first: dict[Key, Counts] = {}
        self._ranked: dict[Key, Counts] = {}
        self._parted: dict[Key, Counts] = {}
        self._further: dict[tuple[int, int, int], list[Counts]] = {}
        self._rates: dict[tuple[int, int, int], list[float]] = {}

    def first(self, guess: Guess, ending: Ending) -> float:
        """Probability that the guess's first token comes after a text with this ending, whatever else is guessed."""
        came, tried = self._first_counts(guess, ending)
        return came / tried

    def ranked(self, rank: int, alone: float) -> float:
        """Probability that a guess of probability ``alone`` comes, given that the ``rank`` better ones do
        not."""
        if rank == 0:
            return alone
        came, tried = self._ranked_counts("ranked", self._ranked, rank, alone)
        return came / tried

    def parted(self, rank: int, alone: float) -> float:
        """The same where chains part."""
        if rank == 0:
            return alone
        came, tried = self._ranked_counts("parted", self._parted, rank, alone)
        return came / tried

    def further(self, kind: Kind, length: int, ending: Ending) -> list[float]:
        """By depth bucket: the probability that the next token of a chain comes, given that all before it did."""
        key = (_LENGTH_BUCKETS[length] if length < len(_LENGTH_BUCKETS) else 12, kind, ending)
        rates = self._rates.get(key)
        if rates is None:
            rows = self._further[key] = [self._begin("further", (bucket, *key), 0.85) for bucket in range(_ROWS)]
            rates = self._rates[key] = [came / tried for came, tried in rows]
        return rates

    def count_first(self, guess: Guess, ending: Ending, came: bool) -> None:
        """Takes in whether a guess's first token came."""
        _count(self._first_counts(guess, ending), came)

    def count_ranked(self, rank: int, alone: float, came: bool) -> None:
        """Takes in whether a guess came when the ``rank`` better ones had failed."""
        if rank:
            _count(self._ranked_counts("ranked", self._ranked, rank, alone), came)

    def count_parted(self, rank: int, alone: float, came: bool) -> None:
        """The same where chains part."""
        if rank:
            _count(self._ranked_counts("parted", self._parted, rank, alone), came)

    def count_further(self, kind: Kind, length: int, ending: Ending, *, start: int, depth: int, missed: bool) -> None:
        """Takes in that, of a chain, the tokens from depth ``start`` to ``depth`` came, at least one, and
        whether the next did not."""
        rates = self.further(kind, length, ending)
        rows = self._further[_LENGTH_BUCKETS[length] if length < len(_LENGTH_BUCKETS) else 12, kind, ending]
        buckets = DEPTH_BUCKETS[start + 1 : depth]
        for bucket in buckets:
            row = rows[bucket]
            row[0] += 1.0
            row[1] += 1.0
        if missed:
            last = DEPTH_BUCKETS[min(depth, len(DEPTH_BUCKETS) - 1)]
            rows[last][1] += 1.0
            buckets = (*buckets, last)
        for bucket in set(buckets):
            rates[bucket] = rows[bucket][0] / rows[bucket][1]

    def _first_counts(self, guess: Guess, ending: Ending) -> Counts:
        kind, _, _, length, detail, _ = guess
        key = (_LENGTH_BUCKETS[length] if length < len(_LENGTH_BUCKETS) else 12, kind, detail, ending)
        counts = self._first.get(key)
        if counts is None:
            counts = self._first[key] = self._begin("first", key, _rough(guess))
        return counts

    def _ranked_counts(self, name: str, table: dict[Key, Counts], rank: int, alone: float) -> Counts:
        key = (min(rank, _RANKS), int(alone * 20) if alone > 0.1 else int(alone * 100) - 50)
        counts = table.get(key)
        if counts is None:
            counts = table[key] = self._begin(name, key, alone * 0.7)
        return counts

    def seen(self) -> Iterator[tuple[str, Key, Counts, Counts]]:
        """All counts that have changed: question, key, as they began, as they are."""
        further: dict[Key, Counts] = {
            (bucket, *key): row for key, rows in self._further.items() for bucket, row in enumerate(rows)
        }
        tables: Tables = {"first": self._first, "ranked": self._ranked, "parted": self._parted, "further": further}
        for name, table in tables.items():
            begun = self._begun[name]
            for key, counts in table.items():
                if counts != begun[key]:
                    yield name, key, begun[key], counts

    def _begin(self, name: str, key: Key, rough: float) -> Counts:
        table = self._start[name]
        counts = table.get(key)
        shorter = key
        while counts is None:
            if (shorter := less_known(name, shorter)) == ():
                counts = [rough * _UNSEEN, _UNSEEN]
            elif shorter in table:
                came, tried = table[shorter]
                counts = [came / tried * _BORROWED, _BORROWED]
        self._begun[name][key] = counts
        return list(counts)


def less_known(name: str, key: Key) -> Key:
    """The key without what matters least, for a question; or ``()`` where nothing can be left out.

    How an answer begins, and whether a change applies, depends on the detail and on nothing else that is known.
    """
    if name in ("ranked", "parted") or (name == "first" and len(key) == 3 and key[1] in _DETAILED):
        return ()
    return key[:-1]


def _count(counts: Counts, came: bool) -> None:
    counts[0] += came
    counts[1] += 1.0


def _rough(guess: Guess) -> float:
    if guess.kind in _CHANGED:
        return _applied(guess)
    if guess.kind == Kind.KEPT:
        return 1.0 - _applied(guess)
    if guess.kind in (Kind.INSERT, Kind.SUBSTITUTE, Kind.SKIP):
        return 0.1 + 0.05 * min(guess.length, 8)
    if guess.kind in (Kind.CONTINUE, Kind.SYNTAX):
        return 0.9 if guess.kind == Kind.CONTINUE else 0.2
    if guess.kind == Kind.SUCCESSOR:
        return _SAID[guess.detail] * _TRUST[guess.length]
    return min(0.95, 0.15 + 0.1 * guess.length)


def _applied(guess: Guess) -> float:
    """How likely a change is to apply, by its reach and how often it did and did not."""
    reach, kept = divmod(guess.detail, 4)
    return (_REACHES[reach] + guess.length) / (1.0 + guess.length + kept)


@cache
def _shipped_text() -> str:
    return (files("lookup_spec.propose") / "hazards.json").read_text(encoding="utf-8")


@cache
def shipped() -> Tables:
    """The counts that come with the package; not to be changed."""
    return loads(_shipped_text())[1]


@cache
def shipped_digest() -> str:
    """Tells the counts that come with this version of the package, and so their keys, from those of others."""
    return hashlib.sha256(_shipped_text().encode()).hexdigest()[:16]

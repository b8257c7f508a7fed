"""How often guesses of each kind come true, learned by counting."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from lookup_spec.propose.counts import Counts, Key, Table, Tables, loads
from lookup_spec.propose.ending import Ending
from lookup_spec.propose.guess import Guess, Kind
from lookup_spec.propose.prompt import Work

DEPTH_BUCKETS = (0, 0, 1, 2, 3, 3, 4, 4, 4, *[5] * 8, *[6] * 16, *[7] * 32)
"""Depths in a chain that are counted together; deeper ones are in the last bucket."""

QUESTIONS = ("first", "ranked", "parted", "further")
"""What is counted, by name."""

_BUCKET_ENDS = [bisect_right(DEPTH_BUCKETS, bucket) for bucket in range(DEPTH_BUCKETS[-1] + 1)]
_LENGTH_BUCKETS = (0, 1, 2, 3, 4, 5, 6, 7, *[8] * 4, *[9] * 8, *[10] * 20, *[11] * 40)
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
        start: counts to start from; not changed.
    """

    def __init__(self, start: Tables) -> None:
        self._start = {name: start.get(name, {}) for name in QUESTIONS}
        self._begun: Tables = {name: {} for name in QUESTIONS}
        self._first: dict[Key, Counts] = {}
        self._ranked: dict[Key, Counts] = {}
        self._parted: dict[Key, Counts] = {}
        self._further: dict[Key, Rates] = {}

    def first(self, guess: Guess, ending: Ending) -> Counts:
        """How often such a guess's first token came after a text with this ending, whatever else was guessed."""
        kind, _, _, length, detail, _ = guess
        key = (_LENGTH_BUCKETS[length] if length < len(_LENGTH_BUCKETS) else 12, kind, detail, ending)
        counts = self._first.get(key)
        if counts is None:
            counts = self._first[key] = _begin("first", self._start["first"], self._begun["first"], key, _rough(guess))
        return counts

    def ranked(self, rank: int, alone: float) -> Counts:
        """How often a guess of probability ``alone`` came where the ``rank`` better ones, at least one, did not."""
        return self._below("ranked", self._ranked, rank, alone)

    def parted(self, rank: int, alone: float) -> Counts:
        """The same where chains part."""
        return self._below("parted", self._parted, rank, alone)

    def further(self, kind: Kind, length: int, ending: Ending) -> Rates:
        """How likely the next tokens of a chain are."""
        key = (_LENGTH_BUCKETS[length] if length < len(_LENGTH_BUCKETS) else 12, kind, ending)
        rates = self._further.get(key)
        if rates is None:
            rates = self._further[key] = Rates(self._start["further"], self._begun["further"], key)
        return rates

    def count_further(self, kind: Kind, length: int, ending: Ending, *, start: int, depth: int, missed: bool) -> None:
        """Takes in that, of a chain, the tokens from depth ``start`` to ``depth`` came, at least one, and
        whether the next did not."""
        rates = self.further(kind, length, ending)
        first, end = start + 1, min(depth, len(DEPTH_BUCKETS))
        while first < end:
            bucket = DEPTH_BUCKETS[first]
            last = min(end, _BUCKET_ENDS[bucket])
            rates.count(bucket, last - first, last - first)
            first = last
        if missed:
            rates.count(DEPTH_BUCKETS[min(depth, len(DEPTH_BUCKETS) - 1)], 0, 1)

    def _below(self, name: str, table: dict[Key, Counts], rank: int, alone: float) -> Counts:
        key = (min(rank, _RANKS), int(alone * 20) if alone > 0.1 else int(alone * 100) - 50)
        counts = table.get(key)
        if counts is None:
            counts = table[key] = _begin(name, self._start[name], self._begun[name], key, alone * 0.7)
        return counts

    def seen(self) -> Iterator[tuple[str, Key, Counts, Counts]]:
        """All counts that have changed: question, key, as they began, as they are."""
        further: dict[Key, Counts] = {
            (bucket, *key): row for key, rates in self._further.items() for bucket, row in rates.counts.items()
        }
        tables: Tables = {"first": self._first, "ranked": self._ranked, "parted": self._parted, "further": further}
        for name, table in tables.items():
            begun = self._begun[name]
            for key, counts in table.items():
                if counts != begun[key]:
                    yield name, key, begun[key], counts


def _begin(name: str, start: Table, begun: Table, key: Key, rough: float) -> Counts:
    """New counts of a key, and what they are to begin with noted."""
    counts = begun[key] = start.get(key) or _borrowed(name, start, key, rough)
    return counts[:]


def _borrowed(name: str, start: Table, key: Key, rough: float) -> Counts:
    """Counts to start from where there are none for the key."""
    while key := less_known(name, key):
        counts = start.get(key)
        if counts is not None:
            return [counts[0] / counts[1] * _BORROWED, _BORROWED]
    return [rough * _UNSEEN, _UNSEEN]


def less_known(name: str, key: Key) -> Key:
    """The key without what matters least, for a question; or ``()`` where nothing can be left out.

    How an answer begins, and whether a change applies, depends on the detail and on nothing else that is known.
    """
    if name in ("ranked", "parted") or (name == "first" and len(key) == 3 and key[1] in _DETAILED):
        return ()
    return key[:-1]


class Rates(dict[int, float]):
    """By depth bucket: the probability that the next token of a chain comes, given that all before it did.

    Each is worked out when it is asked for first.

    Args:
        start: counts to start from.
        begun: takes in which of them were.
        key: what is known about the chain.

    Attributes:
        counts: those worked out so far, by bucket.
    """

    __slots__ = ("_begun", "_key", "_start", "counts")

    def __init__(self, start: Table, begun: Table, key: Key) -> None:
        super().__init__()
        self._start, self._begun, self._key = start, begun, key
        self.counts: dict[int, Counts] = {}

    def __missing__(self, bucket: int) -> float:
        counts = _begin("further", self._start, self._begun, (bucket, *self._key), 0.85)
        came, tried = self.counts[bucket] = counts
        rate = self[bucket] = came / tried
        return rate

    def count(self, bucket: int, came: int, tried: int) -> None:
        """Takes in how often the next token came, of so many times."""
        if bucket not in self:
            self.__missing__(bucket)
        counts = self.counts[bucket]
        counts[0] += came
        counts[1] += tried
        self[bucket] = counts[0] / counts[1]


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
def _shipped_text(work: Work) -> str:
    return (files("lookup_spec.propose") / f"hazards-{work}.json").read_text(encoding="utf-8")


@cache
def shipped(work: Work) -> Tables:
    """The counts that come with the package for such answers; not to be changed.

    Places that look alike come true ten times as often in an answer that follows a text as in one that follows none.
    """
    return loads(_shipped_text(work))[1]


@cache
def shipped_digest(work: Work) -> str:
    """Tells the counts that come with this version of the package, and so their keys, from those of others."""
    return hashlib.sha256(_shipped_text(work).encode()).hexdigest()[:16]

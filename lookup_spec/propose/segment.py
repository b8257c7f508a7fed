"""A stretch of tokens that never changes, indexed once by the n-grams that stand in it."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

import ahocorasick
import numpy as np

MAX_NGRAM = 8
"""Longest indexed n-gram. Longer matches are found by comparing backwards from where these end."""

TOKEN_LIMIT = 1 << 31

_NODE_BYTES = 64  # an automaton node with its allocator's overhead
_TOKEN_BYTES = 36  # one slot of a tuple and one int object


class Match(NamedTuple):
    """Where one n-gram ends: ``positions[start:end]``, ascending, each the index of the token that follows
    it."""

    length: int
    positions: array[int]
    start: int
    end: int

    def around(self, pivot: int, before: int, after: int) -> array[int]:
        """At most ``before`` positions below ``pivot`` and ``after`` from it on, those nearest to it."""
        middle = bisect_left(self.positions, pivot, self.start, self.end)
        return self.positions[max(self.start, middle - before) : min(self.end, middle + after)]

    def latest(self, count: int) -> array[int]:
        """The last ``count`` positions."""
        return self.positions[max(self.start, self.end - count) : self.end]


class Segment:
    """An immutable token sequence with an Aho-Corasick automaton over its n-grams.

    An n-gram is a key only if the n-gram without its first token stands in more than one place: past that
    point the place is known and a longer key adds nothing. So a text has at most ``MAX_NGRAM`` keys a token,
    one of 64,000 equal tokens has eight, and ordinary code about two a token. Keys are closed under dropping
    the first token, so the automaton reports every key that the text read so far ends with, longest first.

    Safe to share between threads: nothing changes after construction, and every search has its own iterator.

    Args:
        ids: the tokens, each from 0 to 2**31 - 1; may be empty.

    Raises:
        ValueError: a token id is out of range.
    """

    __slots__ = ("_automaton", "_lengths", "_positions", "_starts", "ids", "nbytes")

    def __init__(self, ids: Sequence[int]) -> None:
        self.ids = tuple(ids)
        if self.ids and not 0 <= min(self.ids) <= max(self.ids) < TOKEN_LIMIT:
            raise ValueError(f"token ids must lie in 0 to {TOKEN_LIMIT - 1}")
        self._automaton = ahocorasick.Automaton(ahocorasick.STORE_INTS, ahocorasick.KEY_SEQUENCE)
        self._positions = array("i")
        self._starts = array("i", [0])
        self._lengths = array("b")
        self._index()
        nodes = self._automaton.get_stats()["nodes_count"] if len(self._lengths) else 0
        self.nbytes = (
            _TOKEN_BYTES * len(self.ids) + _NODE_BYTES * nodes + 4 * len(self._positions) + 5 * len(self._lengths)
        )

    def __len__(self) -> int:
        return len(self.ids)

    def _index(self) -> None:
        """Groups the places by their n-gram for n = 1, 2, …, going on only inside groups of two or more."""
        ids = np.asarray(self.ids, dtype=np.int64)
        places = np.arange(1, len(ids))
        groups = np.zeros(len(places), dtype=np.int64)
        for n in range(1, MAX_NGRAM + 1):
            if len(places) == 0:
                break
            keys = groups * TOKEN_LIMIT + ids[places - n]
            order = np.argsort(keys, kind="stable")
            keys, places = keys[order], places[order]
            first = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
            counts = np.diff(np.r_[first, len(keys)])
            self._add_keys(n, places[first], counts, places)
            groups = np.repeat(np.arange(len(first)), counts)
            keep = (np.repeat(counts, counts) > 1) & (places > n)
            places, groups = places[keep], groups[keep]
        if len(self._lengths):
            self._automaton.make_automaton()

    def _add_keys(self, n: int, examples: np.ndarray, counts: np.ndarray, places: np.ndarray) -> None:
        """Adds one key a group, the commonest first: a node's children are searched in the order they came."""
        offset, ids, add = len(self._lengths), self.ids, self._automaton.add_word
        order = np.argsort(-counts, kind="stable")
        for place, group in zip(examples[order].tolist(), (order + offset).tolist(), strict=True):
            add(ids[place - n : place], group)
        self._starts.frombytes((np.cumsum(counts) + len(self._positions)).astype(np.int32).tobytes())
        self._positions.frombytes(places.astype(np.int32).tobytes())
        self._lengths.frombytes(bytes([n]) * len(counts))

    def search(self) -> Search:
        """A search of one's own, from the empty text on."""
        return Search(self._automaton, self._lengths, self._starts, self._positions)


class Search:
    """Which n-grams of a segment a growing text ends with. Not for several threads."""

    __slots__ = ("_fed", "_groups", "_iterator", "_lengths", "_positions", "_starts")

    def __init__(
        self, automaton: ahocorasick.Automaton, lengths: array[int], starts: array[int], positions: array[int]
    ) -> None:
        self._iterator = automaton.iter(()) if len(lengths) else None
        self._lengths, self._starts, self._positions = lengths, starts, positions
        self._fed = 0
        self._groups: list[int] = []

    def feed(self, ids: Sequence[int]) -> None:
        """Takes in what comes next in the text.

        The automaton's state depends on the last ``MAX_NGRAM`` tokens only, so a long run costs no more than
        these.
        """
        if self._iterator is None or not ids:
            return
        if len(ids) >= MAX_NGRAM:
            self._iterator.set(tuple(ids[-MAX_NGRAM:]), True)
            self._fed = MAX_NGRAM
        else:
            self._iterator.set(tuple(ids), False)
            self._fed += len(ids)
        last = self._fed - 1
        self._groups = [group for end, group in self._iterator if end == last]

    def matches(self) -> list[Match]:
        """The indexed n-grams that the text ends with, longest first."""
        starts, lengths, positions = self._starts, self._lengths, self._positions
        return [Match(lengths[group], positions, starts[group], starts[group + 1]) for group in self._groups]

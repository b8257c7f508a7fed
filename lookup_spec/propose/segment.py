"""A stretch of tokens that never changes, indexed once by the n-grams that stand in it."""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

MAX_NGRAM = 8
"""Longest indexed n-gram. Longer matches are found by comparing backwards from where these end."""

TOKEN_BITS = 31
"""Token ids are below two to this power."""


class Match(NamedTuple):
    """Where one n-gram ends: ``positions[start:end]``, ascending, each the index of the token that follows
    it."""

    length: int
    positions: array[int]
    start: int
    end: int

    @property
    def may_extend(self) -> bool:
        """Whether more tokens may agree than the n-gram tells, if it is the longest that a text ends with: no longer
        ones are indexed."""
        return self.length == MAX_NGRAM or self.end - self.start == 1

    def around(self, pivot: int, before: int, after: int) -> array[int]:
        """At most ``before`` positions below ``pivot`` and ``after`` from it on, those nearest to it."""
        middle = bisect_left(self.positions, pivot, self.start, self.end)
        return self.positions[max(self.start, middle - before) : min(self.end, middle + after)]

    def latest(self, count: int) -> array[int]:
        """The last ``count`` positions."""
        return self.positions[max(self.start, self.end - count) : self.end]


class Segment:
    """An immutable token sequence with all its places sorted by the tokens before them.

    Places are grouped by the token before them, each group of two or more by the token before that, and so on,
    ``MAX_NGRAM`` deep: past a group of one the place is known and a longer n-gram adds nothing. A group's key is
    the group it is part of and the token that sets it apart, so that finding the n-grams that a text ends with
    takes one binary search each, and no state. In effect this is a suffix array of the reversed text (Manber and
    Myers, 1990), cut off at a depth, with its levels kept. Against an Aho-Corasick automaton over the same
    n-grams it is built in a fraction of the time and memory, and does not suffer from many different tokens.

    Safe to share between threads: nothing changes after construction.

    Args:
        ids: the tokens, each from 0 to 2**31 - 1; may be empty.

    Attributes:
        nbytes: memory it takes.

    Raises:
        ValueError: a token id is out of range.
    """

    __slots__ = ("_keys", "_length", "_levels", "_positions", "_starts", "nbytes")

    def __init__(self, ids: Sequence[int]) -> None:
        tokens = np.asarray(ids, dtype=np.int64)
        if len(tokens) and not 0 <= tokens.min() <= tokens.max() < 1 << TOKEN_BITS:
            raise ValueError(f"token ids must lie in 0 to {(1 << TOKEN_BITS) - 1}")
        self._length = len(ids)
        self._keys = array("q")  # one per group, ascending within a level
        self._starts = array("i", [0])  # where each group's positions start; the last entry ends the last group
        self._positions = array("i")
        self._levels: list[tuple[int, int]] = []  # for n = 1, 2, …: which groups are of that many tokens
        self._index(tokens)
        self.nbytes = sys.getsizeof(self) + sum(
            sys.getsizeof(part) for part in (self._keys, self._starts, self._positions, self._levels, *self._levels)
        )

    def __len__(self) -> int:
        return self._length

    def _index(self, ids: np.ndarray) -> None:
        keys, starts, positions = [], [], []
        places, groups = np.arange(1, len(ids)), np.zeros(max(0, len(ids) - 1), dtype=np.int64)
        first_group = first_position = 0
        for n in range(1, MAX_NGRAM + 1):
            if not len(places):
                break
            key = groups << TOKEN_BITS | ids[places - n]
            order = np.argsort(key, kind="stable")
            key, places = key[order], places[order]
            bounds = np.concatenate([[0], np.flatnonzero(key[1:] != key[:-1]) + 1, [len(key)]])
            first, sizes = bounds[:-1], bounds[1:] - bounds[:-1]
            keys.append(key[first])
            starts.append(first_position + first + sizes)
            positions.append(places)
            self._levels.append((first_group, first_group + len(first)))
            groups = np.repeat(np.arange(first_group, first_group + len(first)), sizes)
            first_group, first_position = first_group + len(first), first_position + len(places)
            further = (np.repeat(sizes, sizes) > 1) & (places > n)
            places, groups = places[further], groups[further]
        for kept, parts, kind in (
            (self._keys, keys, np.int64), (self._starts, starts, np.int32), (self._positions, positions, np.int32)
        ):  # fmt: skip
            if parts:
                kept.frombytes(np.concatenate(parts).astype(kind).tobytes())

    def matches(self, text: Sequence[int]) -> list[Match]:
        """The indexed n-grams that a text ends with, longest first."""
        keys, starts, positions = self._keys, self._starts, self._positions
        found: list[Match] = []
        group = 0
        for n, (low, high) in enumerate(self._levels[: len(text)], 1):
            key = group << TOKEN_BITS | text[-n]
            group = bisect_left(keys, key, low, high)
            if group == high or keys[group] != key:
                break
            found.append(Match(n, positions, starts[group], starts[group + 1]))
        return found[::-1]

"""How much to draft: as much as makes the expected tokens per second most, which may be nothing.

A pass over more rows costs more, and a draft is worth its probability. Nodes of all sessions compete in one ordering;
the prefix of it that maximizes expected tokens over expected seconds is checked (goodput, after Liu et al. 2024,
"Optimizing Speculative Decoding for Serving Large Language Models Using Goodput").
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import pairwise
from typing import Protocol

from torch import Tensor

from lookup_spec.model.cache import KVCache
from lookup_spec.model.forward import Rows

_WIDTHS = (1, 4, 16, 64)
_REPEATS = 2
_LEARNING = 0.1  # how far one step moves the curve towards what it took
_OUTLIER = 4.0  # a step this many times off was disturbed by something else


class Target(Protocol):
    """A model that checks rows of several sessions in one pass."""

    vocab_size: int

    def new_cache(self, capacity: int = 0) -> KVCache:
        """An empty cache for one session."""

    def forward(self, batch: Sequence[Rows]) -> list[Tensor]:
        """Logits of the rows asked for, session by session."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What one session would have computed.

    Attributes:
        fixed: rows needed in any case: prompt tokens and the pending one.
        drafts: path probabilities of its drafted nodes, falling.
    """

    fixed: int
    drafts: Sequence[float]


class CostCurve:
    """Seconds that a forward pass takes, by its number of rows.

    Linear between the widths it knows, and beyond the last as between the last two. Never falling: more rows are not
    believed to be cheaper.

    Args:
        seconds: measured at some widths, at least two.
    """

    def __init__(self, seconds: Mapping[int, float]) -> None:
        self._widths = sorted(seconds)
        self._seconds = [seconds[width] for width in self._widths]
        self._straighten()

    @classmethod
    def measure(cls, model: Target) -> CostCurve:
        """Times a few passes, the best of two at each width, with an empty context."""
        seconds: dict[int, float] = {}
        for width in _WIDTHS:
            rows = Rows(model.new_cache(width), [0] * width, range(-1, width - 1), 0)
            seconds[width] = min(_timed(model, rows) for _ in range(_REPEATS))
        return cls(seconds)

    def seconds(self, rows: int) -> float:
        """Expected time of a pass."""
        left = min(max(bisect_left(self._widths, rows) - 1, 0), len(self._widths) - 2)
        share = (rows - self._widths[left]) / (self._widths[left + 1] - self._widths[left])
        return self._seconds[left] + share * (self._seconds[left + 1] - self._seconds[left])

    def observe(self, rows: int, seconds: float) -> None:
        """Learns from a pass; one that took many times what was expected is taken for a disturbance."""
        ratio = seconds / self.seconds(rows)
        if not 1 / _OUTLIER < ratio < _OUTLIER or rows > self._widths[-1] * 2:
            return
        nearest = min(range(len(self._widths)), key=lambda n: abs(self._widths[n] - rows))
        self._seconds[nearest] *= 1 + _LEARNING * (ratio - 1)
        self._straighten()

    def _straighten(self) -> None:
        for before, after in pairwise(range(len(self._seconds))):
            self._seconds[after] = max(self._seconds[after], self._seconds[before])


def share(curve: CostCurve, wishes: Sequence[Wish]) -> list[int]:
    """How many drafted nodes of each session to check: for each, a number of its first ones.

    Args:
        curve: what passes cost.
        wishes: the sessions'.
    """
    counts, best = [0] * len(wishes), [0] * len(wishes)
    fixed = sum(wish.fixed for wish in wishes)
    expected = float(len(wishes))
    goodput = expected / curve.seconds(fixed)
    ordered = merge(*([(-p, n) for p in wish.drafts] for n, wish in enumerate(wishes)))
    for checked, (negative, session) in enumerate(ordered, 1):
        counts[session] += 1
        expected -= negative
        rate = expected / curve.seconds(fixed + checked)
        if rate > goodput:
            goodput, best = rate, list(counts)
    return best


def _timed(model: Target, rows: Rows) -> float:
    started = time.perf_counter()
    [logits] = model.forward([rows])
    logits.max().item()  # waits for the device
    seconds = time.perf_counter() - started
    rows.cache.commit(())
    return seconds

"""How much to draft: as much as makes the expected tokens per second most, which may be nothing.

A pass over more rows costs more, and a draft is worth its probability. Nodes of all sessions compete in one ordering;
the prefix of it that maximizes expected tokens over expected seconds is checked (goodput, after Liu et al. 2024,
"Optimizing Speculative Decoding for Serving Large Language Models Using Goodput").
"""

from __future__ import annotations

import math
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import pairwise
from typing import Protocol

from torch import Tensor

from lookup_spec.model.cache import BLOCK, KVCache
from lookup_spec.model.forward import Rows

# Kernels take up to fourteen rows at a time; one more costs as much as several.
_WIDTHS = (1, 4, 8, 14, 16, 28, 64)
_WIDE = (256, 1024)  # measured only where it is quick
_SECONDS = 2.0  # for all of these together; what does not fit in is not measured, or not again
_CONTEXT = 1024  # tokens, for what looking back costs
_LOOKING = 16  # rows that look back then
_LEARNING = 0.1  # how far one step moves the curve towards what it took
_SPREAD = 0.5  # how far the widths move with it that were not tried: what slows one down mostly slows down all
_FREE = 1e-12  # seconds; less is nothing
_OUTLIER = 4.0  # a step that takes so many times as long was disturbed by something else


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
        prefill: known tokens that are not in the cache yet. They have to be computed some time, so they are left out
            of the reckoning.
        drafts: path probabilities of the drafted nodes behind the pending token, falling; None if it is not the
            pending token's turn yet.
        context: tokens that the pending token and each drafted node look back on.
        least: as many of the drafts are checked whether they pay or not.
    """

    prefill: int
    drafts: Sequence[float] | None
    context: int = 0
    least: int = 0


class CostCurve:
    """Seconds that a forward pass takes, by its number of rows and what they look back on.

    Linear between the widths it knows, and beyond the last as between the last two. Never falling: more rows are not
    believed to be cheaper. To this comes a share for each pair of a row and a cached token that it looks at.

    Args:
        seconds: measured at some widths, at least two, without context.
        per_pair: seconds per row and token of its context.
    """

    def __init__(self, seconds: Mapping[int, float], per_pair: float = 0.0) -> None:
        self._widths = sorted(seconds)
        self._seconds = [seconds[width] for width in self._widths]
        self._per_pair = per_pair
        self._straighten()

    @classmethod
    def measure(cls, model: Target, context_length: int) -> CostCurve:
        """Times a few passes: each width once, again those for which there is time, and some with a context of
        repeated tokens.

        Whatever disturbs a pass makes it longer, so none is believed to take longer than a wider one.

        Args:
            model: whose passes.
            context_length: most tokens it can hold.
        """
        seconds: dict[int, float] = {}
        started = time.perf_counter()
        depth = min(BLOCK, context_length)
        block = model.new_cache(BLOCK)
        for width in _WIDTHS:
            seconds[width] = _time(model, block, width, depth)
        block.commit(range(depth))
        for width in (*_WIDTHS, *_WIDE):
            expected = seconds.get(width) or max(seconds.values()) * width / max(seconds)
            if time.perf_counter() - started + expected > _SECONDS:
                break
            again = _time(model, model.new_cache(width), width, depth)
            seconds[width] = min(again, seconds.get(width, math.inf))
        for wide, narrow in pairwise(sorted(seconds, reverse=True)):
            seconds[narrow] = min(seconds[narrow], seconds[wide])
        blocks = min(_CONTEXT, context_length - 1) // BLOCK
        if not blocks:
            return cls(seconds)
        cache = model.new_cache(blocks * BLOCK + _LOOKING)
        for _ in range(blocks):
            cache.append(block.rows(0, BLOCK))
        depth = min(_LOOKING, context_length - cache.length)
        longer = min(_time(model, cache, _LOOKING, depth) for _ in range(2)) - seconds[_LOOKING]
        return cls(seconds, max(longer, 0.0) / (_LOOKING * cache.length))

    @property
    def known(self) -> tuple[dict[int, float], float]:
        """What it consists of: seconds by width, and seconds per row and token of its context."""
        return dict(zip(self._widths, self._seconds, strict=True)), self._per_pair

    def seconds(self, rows: int, pairs: int = 0) -> float:
        """Expected time of a pass.

        Args:
            rows: how many.
            pairs: the sum of the lengths of their contexts.
        """
        left, share = self._between(rows)
        low, high = self._seconds[left], self._seconds[left + 1]
        between = low + share * (high - low)
        # Rounding must not put a width on the wrong side of the one that is known.
        return (min(between, high) if share <= 1 else max(between, high)) + pairs * self._per_pair

    def rows_within(self, seconds: float, most: int) -> int:
        """As many rows, up to ``most``, as a pass without context computes in a time."""
        return bisect_right(range(1, most + 1), seconds, key=self.seconds)

    def further(self, context: int) -> float:
        """What one more row takes on average, given what it looks back on."""
        rise = self._seconds[-1] - self._seconds[0]
        return rise / (self._widths[-1] - self._widths[0]) + context * self._per_pair

    def observe(self, rows: int, pairs: int, seconds: float) -> None:
        """Learns from a pass; one that took many times what was expected is taken for a disturbance.

        Prompt tokens must not be among its rows: they need no logits, and so cost less.
        """
        expected = self.seconds(rows, pairs)
        miss = seconds / expected - 1
        if miss + 1 > _OUTLIER or rows > self._widths[-1] * 2:
            return
        # Each part of the expectation moves by how much it had to do with it.
        left, share = self._between(rows)
        parts = {left: (1 - share) * self._seconds[left], left + 1: share * self._seconds[left + 1]}
        for n in range(len(self._seconds)):
            part = max(parts.get(n, 0.0) / expected, _SPREAD * (1 - pairs * self._per_pair / expected))
            self._seconds[n] *= 1 + _LEARNING * part * miss
        self._per_pair *= 1 + _LEARNING * (pairs * self._per_pair / expected) * miss
        self._straighten()

    def _between(self, rows: int) -> tuple[int, float]:
        """The known width to the left, and how far from it to the next one."""
        left = min(max(bisect_left(self._widths, rows) - 1, 0), len(self._widths) - 2)
        return left, (rows - self._widths[left]) / (self._widths[left + 1] - self._widths[left])

    def _straighten(self) -> None:
        for before, after in pairwise(range(len(self._seconds))):
            self._seconds[after] = max(self._seconds[after], self._seconds[before])


def share(curve: CostCurve, wishes: Sequence[Wish], beside: int = 0) -> list[int]:
    """How many drafted nodes of each session to check: for each, a number of its first ones.

    Nodes come in order of their probability per cost, which is the order of their probability where all look back
    on equally much.

    A pass costs something whatever its rows. Whoever waits for the next piece waits for all of it, so that drafts are
    worth what they may spare of whole passes. Where only all answers together count, prompt tokens that have to be
    computed anyway pay for the pass, and a draft has to bring what its own row costs.

    Args:
        curve: what passes cost.
        wishes: the sessions'.
        beside: prompt tokens that pay for the pass; 0 if the answers do.
    """
    paid = curve.seconds(beside) if beside else 0.0

    def seconds(rows: int, pairs: int) -> float:
        return max(curve.seconds(beside + rows, pairs) - paid, _FREE)

    counts = [wish.least for wish in wishes]
    choosing = [(n, wish, wish.drafts) for n, wish in enumerate(wishes) if wish.drafts is not None]
    if not choosing:
        return counts
    rows = sum(1 + wish.least for _, wish, _ in choosing)
    pairs = sum((1 + wish.least) * wish.context for _, wish, _ in choosing)
    expected = sum(1 + sum(drafts[: wish.least]) for _, wish, drafts in choosing)
    best, goodput = list(counts), expected / seconds(rows, pairs)
    for _, probability, n in merge(*(_ordered(curve, n, wish, drafts) for n, wish, drafts in choosing)):
        counts[n] += 1
        rows += 1
        pairs += wishes[n].context
        expected += probability
        rate = expected / seconds(rows, pairs)
        if rate > goodput:
            goodput, best = rate, list(counts)
    return best


def _ordered(curve: CostCurve, n: int, wish: Wish, drafts: Sequence[float]) -> Iterator[tuple[float, float, int]]:
    """A session's nodes, those with the most to give for what they cost first."""
    cost = max(curve.further(wish.context), _FREE)
    return ((-probability / cost, probability, n) for probability in drafts[wish.least :])


def _time(model: Target, cache: KVCache, width: int, depth: int) -> float:
    """What a pass takes over chains of so many rows that follow the cache; the last one may be shorter. None of the
    rows is committed."""
    rows = Rows(cache, [0] * width, [row - 1 if row % depth else -1 for row in range(width)], 0)
    started = time.perf_counter()
    [logits] = model.forward([rows])
    logits.max().item()  # waits for the device
    return time.perf_counter() - started

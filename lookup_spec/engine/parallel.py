"""How many sessions at the same time pay: the fewest that come close to the most tokens per second."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice

from lookup_spec.engine.budget import CostCurve, Wish, share

_ENOUGH = 0.97  # of the most: the last few percent cost as much memory again, and more waiting for each answer


def goodput(curve: CostCurve, wishes: Sequence[Wish]) -> float:
    """Tokens per second to expect of a pass for sessions that choose tokens, if it drafts as much as pays.

    Args:
        curve: what passes cost.
        wishes: the sessions'.
    """
    counts = share(curve, wishes)
    tokens = sum(1 + sum((wish.drafts or ())[:count]) for wish, count in zip(wishes, counts, strict=True))
    pairs = sum((1 + count) * wish.context for wish, count in zip(wishes, counts, strict=True))
    return tokens / curve.seconds(len(wishes) + sum(counts), pairs)


def best_parallel(curve: CostCurve, wishes: Sequence[Wish], most: int) -> int:
    """How many sessions like these to run at the same time.

    Doubles the number as long as that brings something.

    Args:
        curve: what passes cost.
        wishes: of sessions that ran lately; none of them still computes its prompt.
        most: an upper limit.
    """
    numbers = [1 << n for n in range(most.bit_length()) if 1 << n < most] + [most]
    rates = [goodput(curve, list(islice(cycle(wishes), number))) for number in numbers]
    return next(number for number, rate in zip(numbers, rates, strict=True) if rate >= _ENOUGH * max(rates))

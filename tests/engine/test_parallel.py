"""How many sessions at once pay."""

from __future__ import annotations

import pytest

from lookup_spec.engine.budget import CostCurve, Wish
from lookup_spec.engine.parallel import best_parallel, goodput

PLAIN = [Wish(0, ())]


@pytest.mark.parametrize(
    ("seconds", "best"),
    [
        ({1: 1.0, 64: 64.0}, 1),  # every row costs the same: nothing is won
        ({1: 1.0, 16: 1.0, 64: 4.0}, 16),  # free up to a width
        ({1: 1.0, 64: 1.0001}, 64),  # free throughout
    ],
)
def test_as_many_run_as_bring_something(seconds: dict[int, float], best: int) -> None:
    assert best_parallel(CostCurve(seconds), PLAIN, 64) == best


def test_the_fewest_that_come_close_are_enough() -> None:
    """Beyond them the rate hardly grows."""
    curve = CostCurve({1: 1.0, 16: 2.0, 64: 7.0, 256: 27.0})
    best = best_parallel(curve, PLAIN, 256)
    rates = [goodput(curve, PLAIN * number) for number in range(1, 257)]
    assert rates[best - 1] >= 0.97 * max(rates)
    assert best < 256


def test_good_drafts_leave_less_room_for_others() -> None:
    """Sessions that fill the cheap width by themselves need no company."""
    curve = CostCurve({1: 1.0, 16: 1.01, 64: 5.0})
    copying = [Wish(0, (0.99,) * 15)]
    assert best_parallel(curve, copying, 64) < best_parallel(curve, PLAIN, 64)

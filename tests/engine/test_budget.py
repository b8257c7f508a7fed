"""How much is drafted."""

from __future__ import annotations

from itertools import product

from fakes.models import packed
from hypothesis import given
from hypothesis import strategies as st

from lookup_spec.engine.budget import CostCurve, Wish, share

times = st.floats(0.001, 10.0)
drafts = st.lists(st.floats(0.0, 1.0), max_size=4).map(lambda values: sorted(values, reverse=True))
wishes = st.lists(st.builds(Wish, st.integers(1, 40), drafts), min_size=1, max_size=3)
curves = st.builds(lambda a, b, c: CostCurve({1: a, 8: a + b, 32: a + b + c}), times, times, times)


def goodput(curve: CostCurve, asked: list[Wish], counts: tuple[int, ...]) -> float:
    rows = sum(wish.fixed for wish in asked) + sum(counts)
    tokens = len(asked) + sum(sum(wish.drafts[:count]) for wish, count in zip(asked, counts, strict=True))
    return tokens / curve.seconds(rows)


@given(curves, wishes)
def test_no_other_choice_brings_more_tokens_per_second(curve: CostCurve, asked: list[Wish]) -> None:
    """Against every possible choice, tried one by one."""
    best = max(goodput(curve, asked, counts) for counts in product(*(range(len(wish.drafts) + 1) for wish in asked)))
    assert goodput(curve, asked, tuple(share(curve, asked))) >= best * (1 - 1e-9)


def test_a_steep_curve_means_plain_decoding() -> None:
    assert share(CostCurve({1: 1.0, 2: 3.0}), [Wish(1, (0.9, 0.8))]) == [0]


def test_a_flat_curve_means_every_draft() -> None:
    assert share(CostCurve({1: 1.0, 64: 1.0}), [Wish(1, (0.9, 0.01)), Wish(3, (0.5,))]) == [2, 1]


@given(curves, st.lists(st.tuples(st.integers(1, 200), times), max_size=30))
def test_more_rows_are_never_cheaper_whatever_was_seen(curve: CostCurve, seen: list[tuple[int, float]]) -> None:
    for rows, seconds in seen:
        curve.observe(rows, seconds)
    costs = [curve.seconds(rows) for rows in range(1, 300)]
    assert costs == sorted(costs)
    assert costs[0] > 0


def test_the_curve_follows_what_steps_take() -> None:
    curve = CostCurve({1: 1.0, 16: 2.0})
    for _ in range(200):
        curve.observe(16, 3.0)
    assert abs(curve.seconds(16) - 3.0) < 0.05
    assert curve.seconds(1) == 1.0


def test_a_disturbed_step_is_not_learned_from() -> None:
    curve = CostCurve({1: 1.0, 16: 2.0})
    curve.observe(16, 100.0)
    assert curve.seconds(16) == 2.0


def test_a_real_model_can_be_measured() -> None:
    curve = CostCurve.measure(packed("llama"))
    assert 0 < curve.seconds(1) <= curve.seconds(64)

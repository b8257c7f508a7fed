"""How much is drafted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import pytest
import torch
from fakes.models import packed
from fakes.proposers import ScriptProposer
from fakes.scripted import ScriptedModel, TokenCache, recite
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor

from lookup_spec.engine import budget
from lookup_spec.engine.budget import CostCurve, Wish, share
from lookup_spec.engine.session import Session
from lookup_spec.model.forward import Rows
from lookup_spec.params import SamplingParams
from lookup_spec.propose.prompt import Prompt

times = st.floats(0.001, 10.0)
drafts = st.lists(st.floats(0.0, 1.0), max_size=4).map(lambda values: sorted(values, reverse=True))
chunks = st.integers(0, 500)
curves = st.builds(lambda a, b, c, pair: CostCurve({1: a, 8: a + b, 32: a + b + c}, pair), times, times, times, times)


def goodput(curve: CostCurve, asked: list[Wish], counts: tuple[int, ...], beside: int = 0) -> float:
    taken = [(wish, wish.drafts[:count]) for wish, count in zip(asked, counts, strict=True) if wish.drafts is not None]
    rows = sum(1 + len(drafts) for _, drafts in taken)
    pairs = sum((1 + len(drafts)) * wish.context for wish, drafts in taken)
    seconds = curve.seconds(beside + rows, pairs) - (curve.seconds(beside) if beside else 0.0)
    return sum(1 + sum(drafts) for _, drafts in taken) / max(seconds, 1e-12)


@given(curves, st.integers(0, 50), st.lists(st.tuples(chunks, drafts), min_size=1, max_size=3), st.integers(0, 99))
def test_no_other_choice_brings_more_tokens_per_second(curve, context, asked, beside) -> None:
    """Against every possible choice, tried one by one; of a whole pass, or of what rows cost beside prompts."""
    wishes = [Wish(chunk, drafts, context) for chunk, drafts in asked]
    ways = product(*(range(len(drafts) + 1) for _, drafts in asked))
    best = max(goodput(curve, wishes, counts, beside) for counts in ways)
    assert goodput(curve, wishes, tuple(share(curve, wishes, beside)), beside) >= best * (1 - 1e-6)


def test_prompts_of_a_batch_pay_for_the_pass() -> None:
    """A draft that would spare half a pass is not worth a row of its own where the pass is made anyway."""
    curve, wishes = CostCurve({1: 1.0, 101: 2.0, 1001: 11.0}), [Wish(0, (0.5,) * 4), Wish(100, None)]
    assert share(curve, wishes) == [4, 0]
    assert share(curve, wishes, 100) == [0, 0]


@given(curves, st.lists(st.builds(Wish, chunks, drafts, st.integers(0, 5000)), min_size=1, max_size=3))
def test_with_unequal_contexts_drafting_is_no_worse_than_not_drafting(curve: CostCurve, wishes: list[Wish]) -> None:
    counts = share(curve, wishes)
    assert goodput(curve, wishes, tuple(counts)) >= goodput(curve, wishes, (0,) * len(wishes)) * (1 - 1e-9)


def test_a_steep_curve_means_plain_decoding() -> None:
    assert share(CostCurve({1: 1.0, 2: 3.0}), [Wish(0, (0.9, 0.8))]) == [0]


def test_a_flat_curve_means_every_draft() -> None:
    assert share(CostCurve({1: 1.0, 64: 1.0}), [Wish(0, (0.9, 0.01)), Wish(2, (0.5,))]) == [2, 1]


@given(curves, st.lists(st.builds(Wish, st.just(0), drafts), min_size=1, max_size=3), chunks, st.integers(1, 500))
def test_prompts_do_not_change_how_much_is_drafted(curve, wishes, chunk, alone) -> None:
    """Neither a chunk that comes with the last of a prompt nor one of somebody else's."""
    beside = [Wish(chunk, wish.drafts) for wish in wishes]
    assert share(curve, [*beside, Wish(alone, None)]) == [*share(curve, wishes), 0]


def test_a_long_context_makes_drafts_dearer() -> None:
    """Where looking back is what takes the time, the session with less to look back on drafts more."""
    curve = CostCurve({1: 1.0, 64: 1.1}, per_pair=0.001)
    assert share(curve, [Wish(0, (0.5,) * 8, 1000), Wish(0, (0.5,) * 8, 10)]) == [0, 8]


def test_probes_are_checked_though_they_do_not_pay() -> None:
    curve = CostCurve({1: 1.0, 2: 3.0})
    assert share(curve, [Wish(0, (0.1, 0.1), least=1), Wish(0, (0.1,)), Wish(40, None)]) == [1, 0, 0]


def test_given_up_drafts_are_tried_again_now_and_then() -> None:
    """When none paid for long, one is checked; if it was worth nothing, that is all for as long again."""
    model = ScriptedModel(recite({(1,): [3] * 500}), 10)
    session = Session(
        Prompt.plain([1]),
        SamplingParams(max_tokens=100),
        proposer=ScriptProposer([4] * 500),
        output=None,
        cache=model.new_cache(),
        end_ids=[],
        context_length=1000,
        vocab_size=10,
    )
    curve = CostCurve({1: 1.0, 2: 3.0})
    drafted = []
    while not session.finished:
        [count] = share(curve, [session.wish(2, 1)])
        drafted.append(count)
        [logits] = model.forward([session.rows(count)])
        session.advance(logits)
    assert [n for n, count in enumerate(drafted) if count] == [32, 65, 98]
    stats = session.stats()
    assert (stats.drafted, stats.accepted, stats.proposed) == (3, 0, 2 * 97 + 3)


@given(curves, st.lists(st.tuples(st.integers(1, 200), st.integers(0, 100), times), max_size=30))
@example(CostCurve({1: 1.5, 8: 1.5 + 8.142056329163415, 32: 1.5 + 8.142056329163415 + 0.10012767225731226}, 0.985),
         [(40, 58, 0.75)])  # fmt: skip
def test_more_rows_are_never_cheaper_whatever_was_seen(curve: CostCurve, seen: list[tuple[int, int, float]]) -> None:
    for rows, pairs, seconds in seen:
        curve.observe(rows, pairs, seconds)
    costs = [curve.seconds(rows) for rows in range(1, 300)]
    assert costs == sorted(costs)
    assert costs[0] > 0


def test_the_curve_follows_what_steps_take() -> None:
    curve = CostCurve({1: 1.0, 16: 2.0})
    for _ in range(200):
        curve.observe(16, 0, 3.0)
        curve.observe(1, 0, 1.0)
    assert abs(curve.seconds(16) - 3.0) < 0.05
    assert abs(curve.seconds(1) - 1.0) < 0.05


@pytest.mark.parametrize("steps", [[1], [1, 1, 1, 2], [16]])
def test_a_measurement_by_a_busy_machine_does_no_lasting_harm(steps: list[int]) -> None:
    """If everything is ten times as fast as it was at first, widths that nobody tries become cheaper, too."""
    curve = CostCurve({1: 10.0, 4: 11.0, 16: 13.0, 64: 20.0})
    for _ in range(200):
        for rows in steps:
            curve.observe(rows, 0, 1.0 + rows / 64)
    assert curve.seconds(64) < 7.0


def test_a_disturbed_step_is_not_learned_from() -> None:
    curve = CostCurve({1: 1.0, 16: 2.0})
    curve.observe(16, 0, 100.0)
    assert curve.seconds(16) == 2.0


def test_what_long_contexts_take_is_learned() -> None:
    """Whatever was measured at first: at the context that is there, the expectation becomes the truth."""
    curve = CostCurve({1: 1.0, 16: 1.0}, per_pair=0.001)
    for _ in range(300):
        curve.observe(16, 16 * 1000, 41.0)
    assert abs(curve.seconds(16, 16 * 1000) - 41.0) < 0.5
    assert curve.seconds(16) < 2.0


class Timed:
    """A model whose passes take as long as a formula says, by a clock of its own."""

    vocab_size = 10

    def __init__(self, seconds: Callable[[int, int], float], monkeypatch: pytest.MonkeyPatch) -> None:
        self._seconds = seconds
        self.now = 0.0
        self.widths: list[int] = []
        monkeypatch.setattr(budget.time, "perf_counter", lambda: self.now)

    def new_cache(self, capacity: int = 0) -> Any:
        return TokenCache(capacity)

    def forward(self, batch: Sequence[Rows]) -> list[Tensor]:
        [rows] = batch
        rows.cache.write(rows.tokens)
        self.now += self._seconds(len(rows.tokens), rows.cache.length)
        self.widths.append(len(rows.tokens))
        return [torch.zeros(len(rows.tokens) - rows.keep, self.vocab_size)]


def test_the_curve_is_what_passes_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """By width and context, as measured in a warm-up."""
    model = Timed(lambda rows, context: 0.001 + rows * 1e-5 + rows * context * 1e-8, monkeypatch)
    curve = CostCurve.measure(model, 4096)
    for rows, context in ((1, 0), (20, 0), (256, 0), (16, 512), (40, 3000)):
        expected = 0.001 + rows * 1e-5 + rows * context * 1e-8
        assert abs(curve.seconds(rows, rows * context) / expected - 1) < 0.01


@pytest.mark.parametrize(("second", "widest"), [(1e-6, 1024), (5e-3, 64)])
def test_the_warm_up_is_short(monkeypatch: pytest.MonkeyPatch, second: float, widest: int) -> None:
    """Wide passes are measured where they are quick and estimated where they are not."""
    model = Timed(lambda rows, _: rows * second, monkeypatch)
    CostCurve.measure(model, 4096)
    assert max(model.widths) == widest


def test_a_disturbed_narrow_pass_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but a disturbance makes a narrow pass take longer than a wide one; here there is no time for a second."""
    passes = iter(range(1000))
    model = Timed(lambda rows, _: 5.0 if next(passes) == 0 else rows * 0.01, monkeypatch)
    curve = CostCurve.measure(model, 64)
    assert curve.seconds(1) == curve.seconds(4) == pytest.approx(0.04)
    assert curve.seconds(64) == pytest.approx(0.64)


@given(curves, times, st.integers(1, 3000))
def test_as_many_rows_as_a_time_allows(curve: CostCurve, seconds: float, most: int) -> None:
    rows = curve.rows_within(seconds, most)
    assert 0 <= rows <= most
    assert rows == 0 or curve.seconds(rows) <= seconds
    assert rows == most or curve.seconds(rows + 1) > seconds


@pytest.mark.parametrize("context_length", [40, 192])
def test_a_real_model_can_be_measured(context_length: int) -> None:
    curve = CostCurve.measure(packed("gpt-2, learned positions"), context_length)
    assert 0 < curve.seconds(1) <= curve.seconds(64) <= curve.seconds(64, 64 * 1000)

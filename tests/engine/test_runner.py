"""Sessions share forward passes and nothing else."""

from __future__ import annotations

from random import Random

import pytest
import torch
from fakes.models import CONTEXT, END, VOCAB, generate, packed
from fakes.proposers import ScriptProposer, TreeProposer
from fakes.scripted import ScriptedModel, recite

from lookup_spec.engine.budget import CostCurve
from lookup_spec.engine.runner import Runner
from lookup_spec.engine.scheduler import Limits
from lookup_spec.engine.session import Session
from lookup_spec.model.sampling import DistributionError
from lookup_spec.params import Priority, SamplingParams
from lookup_spec.propose.prompt import Prompt
from lookup_spec.propose.protocol import NoProposer
from lookup_spec.propose.tree import DraftTree

SCRIPT = tuple(range(3, 9)) * 4
FIRST, SECOND, THIRD = (1,), (2,), (1, 1)


def new_session(model, prompt, *, proposer=None, limit=12) -> Session:
    return Session(
        Prompt.plain(prompt),
        SamplingParams(max_tokens=limit),
        proposer=proposer or ScriptProposer(SCRIPT),
        output=None,
        cache=model.new_cache(),
        end_ids=[END] if model.vocab_size == VOCAB else [],
        context_length=CONTEXT,
        vocab_size=model.vocab_size,
    )


def reciter(**scripts) -> ScriptedModel:
    return ScriptedModel(recite({THIRD: SCRIPT, FIRST: SCRIPT, SECOND: SCRIPT, **scripts}), 10)


def tokens_of(session: Session) -> tuple[int, ...]:
    """Everything a session has for its reader; its error, if it has one, is raised after that."""
    tokens: tuple[int, ...] = ()
    while (piece := session.take()) is not None:
        tokens += piece.token_ids
        if piece.finish_reason is not None:
            break
    return tokens


def finish(runner: Runner) -> None:
    for _ in range(1000):
        if not runner.step():
            return
    raise AssertionError("the runner does not come to an end")


@pytest.mark.parametrize("width", [0, 1, 4])
def test_a_row_without_numbers_ends_its_own_session(width):
    """One session's NaN is its own error, after all that it had chosen; its neighbour goes on."""
    model = ScriptedModel(recite({FIRST: SCRIPT[:5], SECOND: SCRIPT}), 10)
    runner = Runner(model, Limits(max_draft_tokens=width))
    broken, healthy = new_session(model, FIRST), new_session(model, SECOND)
    runner.add(broken)
    runner.add(healthy)
    finish(runner)
    piece_tokens = broken.take().token_ids
    assert piece_tokens == SCRIPT[:5]
    for _ in range(2):
        with pytest.raises(DistributionError):
            broken.take()
    assert broken.finish_reason is None
    assert tokens_of(healthy) == SCRIPT[:12]


class Breaking(ScriptProposer):
    """Fails in one of its methods once some tokens are known."""

    def __init__(self, method: str, after: int) -> None:
        super().__init__(SCRIPT)
        self._method, self._after = method, after

    def propose(self, limit):
        if self._method == "propose" and self.observed >= self._after:
            raise ZeroDivisionError("broken proposer")
        return super().propose(limit)

    def observe(self, ids, seen=None):
        super().observe(ids, seen)
        if self._method == "observe" and self.observed >= self._after:
            raise ZeroDivisionError("broken proposer")


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("method", ["propose", "observe"])
def test_a_broken_proposer_ends_its_own_session(method, alone):
    """A proposer's bug concerns one session; the neighbour's answer is whole."""
    model = reciter()
    runner = Runner(model, Limits(max_draft_tokens=2))
    broken = new_session(model, FIRST, proposer=Breaking(method, after=6))
    healthy = new_session(model, SECOND)
    runner.add(broken)
    if not alone:
        runner.add(healthy)
    finish(runner)
    assert broken.take().token_ids == SCRIPT[:6]
    with pytest.raises(ZeroDivisionError, match="broken proposer"):
        broken.take()
    if not alone:
        assert tokens_of(healthy) == SCRIPT[:12]


def test_a_failing_pass_ends_those_that_took_part():
    """Sessions that waited outside the failing pass are served by the next ones."""
    model = reciter()
    runner = Runner(model, Limits(max_draft_tokens=2, max_sessions=2))
    sessions = [new_session(model, prompt) for prompt in (FIRST, SECOND, THIRD)]
    for session in sessions:
        runner.add(session)
    runner.step()
    forward, failure = model.forward, MemoryError("too big")

    def fail_once(_):
        model.forward = forward
        raise failure

    model.forward = fail_once
    assert list(runner.step()) == sessions[:2]
    for session in sessions[:2]:
        assert session.take().token_ids == SCRIPT[:3]
        with pytest.raises(MemoryError):
            session.take()
    assert list(runner.sessions) == [sessions[2]]
    finish(runner)
    assert tokens_of(sessions[2]) == SCRIPT[:12]


def test_sessions_beyond_the_limit_wait_in_order():
    """At most ``max_sessions`` take part in a step; the longest waiting moves up when one leaves."""
    model = reciter()
    runner = Runner(model, Limits(max_draft_tokens=0, max_sessions=2))
    sessions = [new_session(model, FIRST, limit=limit) for limit in (3, 5, 2, 2)]
    for session in sessions:
        runner.add(session)
    took_part = []
    while running := runner.step():
        took_part.append([sessions.index(session) for session in running])
    assert took_part == [[0, 1]] * 3 + [[1, 2]] * 2 + [[3]] * 2


def test_a_cancelled_session_leaves_before_the_next_step():
    """Cancelling keeps what was chosen, says so once, and gives the place to the next in line."""
    model = reciter()
    runner = Runner(model, Limits(max_draft_tokens=1, max_sessions=1))
    first, second = new_session(model, FIRST), new_session(model, SECOND)
    runner.add(first)
    runner.add(second)
    runner.step()
    first.cancel()
    first.cancel()
    assert list(runner.step()) == [second]
    piece = first.take()
    assert (piece.token_ids, piece.finish_reason) == (SCRIPT[:2], "cancelled")
    assert first.take() is None
    finish(runner)
    second.cancel()
    assert second.finish_reason == "length"


def test_a_finished_session_is_never_run():
    """A request for no tokens is over before its first step, and its only piece says so."""
    model = reciter()
    runner = Runner(model, Limits(max_draft_tokens=1))
    session = new_session(model, FIRST, limit=0)
    runner.add(session)
    assert not runner.step()
    piece = session.take()
    assert (piece.token_ids, piece.finish_reason, piece.stats.forward_passes) == ((), "length", 0)
    assert session.take() is None


@pytest.mark.parametrize("seed", range(3))
def test_sessions_may_join_leave_and_break_at_any_step(seed):
    """Whoever comes, goes or is cancelled meanwhile, each finished answer is that of ``generate``."""
    random, model = Random(seed), packed("gemma 3, alternating windows")
    prompts = [[random.randrange(2, VOCAB) for _ in range(random.choice((1, 13, 30)))] for _ in range(14)]
    truths = generate("gemma 3, alternating windows", prompts, max_new_tokens=12)
    runner = Runner(model, Limits(max_draft_tokens=5, prefill_chunk=6, max_sessions=4))
    waiting = [
        new_session(model, prompt, proposer=TreeProposer(truth, random, VOCAB, branching=0.3, right=0.7))
        for prompt, truth in zip(prompts, truths, strict=True)
    ]
    sessions, cancelled = list(waiting), set()
    while waiting or runner.sessions:
        while waiting and random.random() < 0.5:
            runner.add(waiting.pop(0))
        if runner.sessions and random.random() < 0.1:
            victim = random.choice(runner.sessions)
            victim.cancel()
            cancelled.add(sessions.index(victim))
        runner.step()
    for number, (session, truth) in enumerate(zip(sessions, truths, strict=True)):
        got = list(tokens_of(session))
        assert got == (truth[: len(got)] if number in cancelled else truth)
    assert 0 < len(cancelled) < len(sessions)


def test_one_long_prompt_does_not_hold_up_the_others():
    """While a prompt is taken in chunk by chunk, its neighbour gets a token at every step."""
    model = packed("llama")
    runner = Runner(model, Limits(max_draft_tokens=0, prefill_chunk=4))
    short = new_session(model, [5], proposer=NoProposer(), limit=30)
    runner.add(short)
    runner.step()
    long = new_session(model, [7] * 41, proposer=NoProposer(), limit=1)
    runner.add(long)
    steps = 0
    while not long.finished:
        before = short.stats().completion_tokens
        runner.step()
        steps += 1
        assert short.finished or short.stats().completion_tokens == before + 1
    assert steps == 10  # 40 tokens before the pending one: ten chunks, and the tree rides on the last


def test_passes_are_shared():
    """Running together takes as many forwards as the longest session alone."""
    model = reciter()
    calls = []
    forward = model.forward
    model.forward = lambda batch: calls.append(len(batch)) or forward(batch)
    runner = Runner(model, Limits(max_draft_tokens=3))
    for prompt in (FIRST, SECOND, THIRD):
        runner.add(new_session(model, prompt))
    finish(runner)
    assert calls == [3, 3, 3]


def test_stats_count_drafts_by_source():
    """Drafted, accepted and delivered tokens and passes are counted as they happened."""
    model = reciter()
    session = new_session(model, FIRST, proposer=ScriptProposer((*SCRIPT[:4], 0, 0)), limit=6)
    runner = Runner(model, Limits(max_draft_tokens=8))
    runner.add(session)
    finish(runner)
    stats = session.stats()
    # First step: 5 drafts, 4 right, 5 tokens. Then room for one token is left, which needs no draft.
    assert (stats.forward_passes, stats.drafted, stats.accepted, stats.completion_tokens) == (2, 5, 4, 6)
    assert {name: (s.drafted, s.accepted) for name, s in stats.sources.items()} == {"script": (5, 4)}
    assert stats.prompt_tokens == 1
    assert torch.isfinite(torch.tensor([stats.prefill_seconds, stats.decode_seconds])).all()


class Unsure(ScriptProposer):
    """It does not know that it is right."""

    def propose(self, limit: int) -> DraftTree:
        return DraftTree.chain(self.last, self.script[self.observed : self.observed + limit], "script", 0.6)


@pytest.mark.parametrize(("priority", "drafts"), [("interactive", True), ("batch", False)])
def test_beside_prompts_only_who_waits_for_pieces_drafts_what_the_pass_does_not_cost(
    priority: Priority, drafts: bool
) -> None:
    """The same draft spares somebody at an editor whole passes; a batch has to make them anyway, for its prompts."""
    model = ScriptedModel(recite({FIRST: SCRIPT, THIRD * 50: SCRIPT}), 10)
    costs = CostCurve({1: 1.0, 101: 2.0, 1001: 11.0})
    runner = Runner(model, Limits(max_draft_tokens=4, prefill_chunk=20), costs=costs)
    session = new_session(model, FIRST, proposer=Unsure(SCRIPT), limit=20)
    runner.add(session, priority=priority)
    runner.step()
    runner.add(new_session(model, THIRD * 50), priority=priority)
    before = session.stats().drafted
    for _ in range(3):
        runner.step()
    assert (session.stats().drafted > before) == drafts
    finish(runner)
    assert tokens_of(session) == SCRIPT[:20]

"""Sessions of a runner whose passes are replayed where they fit: what they answer is what plain decoding does."""

from __future__ import annotations

import gc
from random import Random

import pytest
from fakes.models import CONTEXT, END, VOCAB, packed
from fakes.proposers import any_proposer
from fakes.running import Job, answer_all

from lookup_spec.engine.runner import Runner
from lookup_spec.engine.scheduler import Limits
from lookup_spec.engine.session import Session
from lookup_spec.model.forward import Rows
from lookup_spec.model.graphs import Graphs
from lookup_spec.model.seats import Seats
from lookup_spec.params import SamplingParams
from lookup_spec.propose.prompt import Prompt
from tests.model.recorded import Recorded

TOKENS = 24
PARAMS = SamplingParams(max_tokens=TOKENS, ignore_eos=True)


def graphed(name: str, count: int, capture) -> Graphs:
    model = packed(name)
    cache = model.new_cache()
    model.forward([Rows(cache, [0], [-1], 0)])
    cache.commit([0])
    return Graphs(model, Seats(cache.rows(0, 1), count, 128), capture, fewest=32)


def prompts_of(random: Random, count: int) -> list[list[int]]:
    """Texts of a few lengths, some of which begin alike."""
    documents = [[random.randrange(2, VOCAB) for _ in range(90)] for _ in range(2)]
    return [
        random.choice(documents)[: random.choice((10, 40, 90))] + [random.randrange(2, VOCAB) for _ in range(6)]
        for _ in range(count)
    ]


def plain(name: str, prompts: list[list[int]]) -> list[list[int]]:
    """Greedy answers, token by token, without a graph; elsewhere they are tied to those of ``generate``."""
    jobs = [Job(prompt, PARAMS) for prompt in prompts]
    return [answer.token_ids for answer in answer_all(packed(name), jobs, width=0, ends=[END], context=CONTEXT)]


def run_all(graphs: Graphs, limits: Limits, prompts, truths, random: Random) -> None:
    """Lets sessions come and go at random."""
    runner, sessions, cancelled, waiting = Runner(graphs, limits), [], set(), list(range(len(prompts)))
    while waiting or runner.sessions:
        while waiting and random.random() < 0.2:
            number = waiting.pop(0)
            session = Session(
                Prompt.plain(prompts[number]),
                PARAMS,
                proposer=any_proposer(truths[number], random, VOCAB),
                output=None,
                cache=graphs.new_cache(),
                end_ids=[END],
                context_length=CONTEXT,
                vocab_size=VOCAB,
            )
            sessions.append((number, session))
            runner.add(session)
        if runner.sessions and random.random() < 0.03:
            victim = random.choice(runner.sessions)
            victim.cancel()
            cancelled.update(number for number, session in sessions if session is victim)
        runner.step()
        users = [seat.user for seat in graphs.seats._seats if seat.user is not None]
        assert len({id(user) for user in users}) == len(users)
        assert all(user.seat.user is user for user in users)
    for number, session in sessions:
        piece = session.take()
        got = [] if piece is None else list(piece.token_ids)
        assert got == (truths[number][: len(got)] if number in cancelled else truths[number])
        assert (session.cache.capacity, session.cache.seat) == (0, None)


@pytest.mark.parametrize(("name", "seats"), [("llama", 2), ("mistral, sliding window", 4), ("gemma 2, softcap", 4)])
def test_no_schedule_shows_in_a_replayed_answer(name, seats):
    """Whoever joins, leaves, is cancelled or preempted, begins with another's text, outgrows a seat or finds none: the
    greedy answer is the plain one, and in the end all seats are empty."""
    random, capture = Random(seats), Recorded()
    graphs = graphed(name, seats, capture)
    prompts = prompts_of(random, 10)
    truths = plain(name, prompts)
    limits = Limits(max_sessions=seats + 1, prefill_chunk=50, max_draft_tokens=9, kv_tokens=576, kept_tokens=200)
    run_all(graphs, limits, prompts, truths, random)
    gc.collect()
    assert not any(seat.user for seat in graphs.seats._seats)
    assert capture.replayed >= 10


def test_answers_are_the_same_when_capturing_fails_on_the_way():
    """After three graphs no more can be captured."""
    random, recorded = Random(7), Recorded()

    def capture(run):
        if recorded.captured == 3:
            raise RuntimeError("out of memory")
        return recorded(run)

    graphs = graphed("llama", 4, capture)
    prompts = prompts_of(random, 10)
    truths = plain("llama", prompts)
    run_all(graphs, Limits(max_sessions=4, max_draft_tokens=9), prompts, truths, random)
    assert graphs.captured == 3
    assert recorded.replayed >= 3

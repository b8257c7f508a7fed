"""Who runs when, in which memory, and that no answer shows it."""

from __future__ import annotations

from random import Random

import pytest
from fakes.proposers import any_proposer
from fakes.scripted import ScriptedModel
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup_spec.engine.runner import Runner
from lookup_spec.engine.scheduler import Limits
from lookup_spec.engine.session import Session
from lookup_spec.errors import InvalidRequestError
from lookup_spec.model.cache import in_blocks
from lookup_spec.params import SamplingParams
from lookup_spec.propose.prompt import Prompt
from lookup_spec.propose.protocol import NoProposer
from lookup_spec.stats import Load

VOCAB, END, CONTEXT = 7, 0, 1000
DOCUMENT = [1, 2, 3, 4, 5, 6] * 40


def next_token(path) -> int:
    """A language of its own: what follows depends on all that came before."""
    return Random(hash(tuple(path))).randrange(VOCAB)


def endless(path) -> int:
    """A language whose answers do not end by themselves."""
    return 1 + len(path) % 6


def plain(prompt, limit) -> list[int]:
    text = list(prompt)
    while len(text) < len(prompt) + limit and (token := next_token(text)) != END:
        text.append(token)
    return text[len(prompt) :]


class Watched(ScriptedModel):
    """Counts rows, and holds every pass to what was promised."""

    def __init__(self, language=next_token) -> None:
        super().__init__(lambda path: {language(path): 10.0}, VOCAB)
        self.rows = 0
        self.batch = []

    def forward(self, batch):
        self.batch = list(batch)
        self.rows += sum(len(rows.tokens) for rows in batch)
        logits = super().forward(batch)
        assert not any(rows.cache.grown_unasked for rows in batch), "room is made before the pass"
        return logits

    @property
    def prefill(self) -> int:
        """Prompt tokens in the last pass."""
        return sum(rows.keep for rows in self.batch)


def session_for(model, prompt, limit=5, proposer=None) -> Session:
    return Session(
        Prompt.plain(prompt),
        SamplingParams(max_tokens=limit),
        proposer=proposer or NoProposer(),
        output=None,
        cache=model.new_cache(),
        end_ids=[END],
        context_length=CONTEXT,
        vocab_size=VOCAB,
    )


def tokens_of(session: Session) -> list[int]:
    return list(session.take().token_ids)


def finish(runner: Runner) -> None:
    for _ in range(2000):
        if not runner.step():
            assert not runner.sessions, "somebody waits and nobody runs"
            return
    raise AssertionError("the runner does not come to an end")


prompts = st.builds(
    lambda head, tail: DOCUMENT[:head] + tail,
    st.sampled_from([0, 30, 31, 64, 130]),
    st.lists(st.integers(1, VOCAB - 1), min_size=1, max_size=60),
)
requests = st.tuples(prompts, st.integers(1, 90), st.sampled_from(["interactive", "batch"]), st.sampled_from(["", "a"]))
limits = st.builds(
    Limits,
    max_sessions=st.integers(1, 5),
    prefill_chunk=st.sampled_from([1, 7, 40, 512]),
    max_draft_tokens=st.sampled_from([0, 3, 70]),
    kv_tokens=st.sampled_from([None, 320, 384, 704, 1024]),
    kept_tokens=st.sampled_from([0, 50, 10_000]),
)


@settings(max_examples=150, deadline=None)
@given(limits, st.lists(requests, min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_no_schedule_shows_in_an_answer(limits, asked, random):
    """Whoever joins, leaves, is preempted or begins with another's text: an answer is the one of a run alone, and at
    the end nothing is left but what was to be kept."""
    model = Watched()
    runner = Runner(model, limits)
    sessions, truths, cancelled = [], [], set()
    waiting = list(asked)
    while waiting or runner.sessions:
        while waiting and random.random() < 0.4:
            prompt, limit, priority, tenant = waiting.pop()
            truths.append(plain(prompt, limit))
            sessions.append(session_for(model, prompt, limit, any_proposer(truths[-1], random, VOCAB)))
            runner.add(sessions[-1], tenant=tenant, priority=priority)
        if runner.sessions and random.random() < 0.03:
            victim = random.choice(runner.sessions)
            victim.cancel()
            cancelled.add(sessions.index(victim))
        took_part = runner.step()
        assert took_part or not runner.sessions
        assert model.prefill <= limits.prefill_chunk
        for session in runner.sessions:
            assert session.cache.tokens == list(session.tokens[: session.cache.length])
        load = runner.load
        assert load.running <= limits.max_sessions
        assert load.kept_tokens <= limits.kept_tokens
        if limits.kv_tokens is not None:
            assert load.running_tokens + load.kept_tokens <= limits.kv_tokens
    for number, (session, truth) in enumerate(zip(sessions, truths, strict=True)):
        got = tokens_of(session)
        assert got == (truth[: len(got)] if number in cancelled else truth)
        assert session.cache.capacity == 0
    assert runner.load == Load(kept_tokens=runner.load.kept_tokens, preempted=runner.load.preempted)


def test_a_second_instruction_costs_only_itself():
    """Asked twice about one document, only what differs is computed."""
    model = Watched()
    runner = Runner(model, Limits(kept_tokens=1000))
    runner.add(first := session_for(model, [*DOCUMENT, 1, 1, 1]))
    finish(runner)
    model.rows = 0
    runner.add(second := session_for(model, [*DOCUMENT, 2, 2, 2], limit=1))
    finish(runner)
    assert (first.stats().cached_tokens, second.stats().cached_tokens) == (0, len(DOCUMENT))
    assert model.rows == 3


def test_the_last_token_is_computed_even_if_all_are_there():
    """The same prompt again costs one row, and the answer is the same."""
    model = Watched()
    runner = Runner(model, Limits(kept_tokens=1000))
    answers = []
    for _ in range(2):
        runner.add(session := session_for(model, DOCUMENT, limit=1))
        finish(runner)
        answers.append(tokens_of(session))
    assert session.stats().cached_tokens == len(DOCUMENT) - 1
    assert answers == [plain(DOCUMENT, 1)] * 2


def test_a_cancelled_session_leaves_its_work_to_others():
    """What was computed before the cancel is not computed again."""
    model = Watched()
    runner = Runner(model, Limits(prefill_chunk=50, kept_tokens=1000))
    runner.add(first := session_for(model, DOCUMENT))
    runner.step()
    runner.step()
    first.cancel()
    runner.add(second := session_for(model, DOCUMENT))
    finish(runner)
    assert second.stats().cached_tokens == 100


def test_sessions_that_begin_alike_compute_it_once():
    """Of many that come at once, one computes the common part and the others copy it, kept or not."""
    model = Watched(endless)
    runner = Runner(model, Limits(prefill_chunk=50))
    sessions = [session_for(model, [*DOCUMENT, n, n], limit=9) for n in (1, 2, 3, 4)]
    for session in sessions:
        runner.add(session)
    finish(runner)
    assert model.rows == len(DOCUMENT) + 4 * (1 + 9)
    assert [session.stats().cached_tokens for session in sessions] == [0] + [len(DOCUMENT)] * 3


@given(st.lists(st.tuples(st.sampled_from("ab"), prompts), min_size=2, max_size=6))
def test_tenants_never_meet(asked):
    """However alike their texts, what one tenant finds is what it would find if it were alone."""

    def cached(wanted) -> list[int]:
        model = Watched()
        runner = Runner(model, Limits(kept_tokens=10_000))
        found = []
        for tenant, prompt in asked:
            if tenant in wanted:
                runner.add(session := session_for(model, prompt), tenant=tenant)
                finish(runner)
                found.append((tenant, session.stats().cached_tokens))
        return found

    together = cached("ab")
    for tenant in "ab":
        assert [found for found in together if found[0] == tenant] == cached(tenant)


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_tenants_do_not_share_while_they_run(steps):
    """Neither waits for the other's prompt, nor copies it, at whatever time they come."""
    model = Watched(endless)
    runner = Runner(model, Limits(prefill_chunk=100, kept_tokens=10_000))
    sessions = {tenant: session_for(model, DOCUMENT, limit=9) for tenant in "ab"}
    runner.add(sessions["a"], tenant="a")
    for _ in range(steps):
        runner.step()
    runner.add(sessions["b"], tenant="b")
    runner.step()
    assert runner.load.running == 2
    finish(runner)
    assert [session.stats().cached_tokens for session in sessions.values()] == [0, 0]


def test_memory_goes_to_the_first_in_line():
    """When answers outgrow the memory, the youngest begins again later, and loses nothing."""
    model, limit = Watched(endless), 150
    runner = Runner(model, Limits(kv_tokens=512, max_draft_tokens=0))
    sessions = [session_for(model, [n] * 60, limit) for n in (1, 2, 3)]
    for session in sessions:
        runner.add(session)
    ended = []
    for _ in range(2000):
        if not runner.step():
            break
        ended += [n for n, session in enumerate(sessions) if session.finished and n not in ended]
    assert runner.load.preempted > 0
    assert ended == sorted(ended)
    for session in sessions:
        assert tokens_of(session) == [1 + n % 6 for n in range(60, 60 + limit)]


def test_kept_prefixes_give_way_to_running_sessions():
    """Memory that is only kept is no reason to wait."""
    model = Watched(endless)
    runner = Runner(model, Limits(kv_tokens=512, kept_tokens=512, max_draft_tokens=0))
    for n in (1, 2):
        runner.add(session_for(model, [n] * 200, limit=1))
        finish(runner)
    assert runner.load.kept_tokens == 400
    sessions = [session_for(model, [n] * 100, limit=20) for n in (3, 4)]
    for session in sessions:
        runner.add(session)
    assert list(runner.step()) == sessions
    assert runner.load.preempted == 0


def test_what_can_never_fit_is_refused():
    """A request longer than the memory is told so at once; the longest that fits is served."""
    model = Watched()
    runner = Runner(model, Limits(kv_tokens=128))
    with pytest.raises(InvalidRequestError, match="memory for 192 tokens, but there is memory for 128"):
        runner.add(session_for(model, [1] * 100, limit=29))
    runner.add(session := session_for(model, [1] * 100, limit=28))
    finish(runner)
    assert tokens_of(session) == plain([1] * 100, 28)


def test_interactive_requests_come_first():
    """They overtake a batch in line, and take its place if there is no other; the batch goes on later from where it
    was."""
    model = Watched(endless)
    runner = Runner(model, Limits(max_sessions=1, kept_tokens=1000))
    batch = [session_for(model, [n] * 50, limit=8) for n in (1, 2)]
    for session in batch:
        runner.add(session, priority="batch")
    runner.step()
    runner.add(urgent := session_for(model, [3] * 50, limit=8))
    assert list(runner.step()) == [urgent]
    finish(runner)
    assert [tokens_of(session) for session in (*batch, urgent)] == [[1 + n % 6 for n in range(50, 58)]] * 3
    assert model.rows == 3 * (50 + 7)  # no row twice, though the first was interrupted


@pytest.mark.parametrize("where", ["queue", "prefill", "answer"])
def test_a_cancel_takes_effect_before_the_next_pass(where):
    """Wherever it stands: no further row is computed for it, and its memory is free."""
    model = Watched()
    runner = Runner(model, Limits(max_sessions=1, prefill_chunk=30))
    if where == "queue":
        runner.add(session_for(model, [2] * 90))
    runner.add(session := session_for(model, [1] * 90, limit=50))
    for _ in range({"queue": 1, "prefill": 2, "answer": 4}[where]):
        runner.step()
    session.cancel()
    others = sum(len(rows.tokens) for rows in model.batch if rows.cache is not session.cache)
    rows = model.rows + others  # the same again for those that stay
    runner.step()
    assert model.rows == rows
    assert session.cache.capacity == 0
    assert session not in runner.sessions


def test_no_answer_waits_for_a_prompt_longer_than_a_chunk():
    """However many long prompts come, everyone in the middle of an answer takes part in every pass, and a short prompt
    needs one pass."""
    model = Watched(endless)
    runner = Runner(model, Limits(prefill_chunk=20))
    runner.add(talking := session_for(model, [1, 2], limit=60))
    runner.step()
    for n in (1, 2, 3):
        runner.add(session_for(model, [n] * 200, limit=1))
    for _ in range(3):
        assert talking in runner.step()
        assert model.prefill == 20
    runner.add(short := session_for(model, [4] * 8, limit=1))
    runner.step()
    assert short.finished


def test_long_prompts_are_not_starved_by_short_ones():
    """Half of every chunk goes to whoever waits longest."""
    model = Watched()
    runner = Runner(model, Limits(prefill_chunk=20))
    runner.add(long := session_for(model, [1] * 101, limit=1))
    steps = 0
    while not long.finished:
        runner.add(session_for(model, [2 + steps % 5] * 21, limit=1))
        runner.step()
        steps += 1
    assert steps <= 10


def test_room_is_counted_in_blocks():
    assert [in_blocks(n) for n in (0, 1, 64, 65)] == [0, 64, 64, 128]

"""Real models: keys and values computed for another text, or twice, give the answers of a text computed once."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from fakes.models import CONFIGS, CONTEXT, END, VOCAB, generate, packed
from fakes.proposers import any_proposer

from lookup_spec.engine.runner import Runner
from lookup_spec.engine.scheduler import Limits
from lookup_spec.engine.session import Session
from lookup_spec.params import SamplingParams
from lookup_spec.propose.prompt import Prompt
from lookup_spec.propose.protocol import NoProposer

TOKENS = 48


def prompts_that_begin_alike(random: Random, count: int) -> list[list[int]]:
    documents = [[random.randrange(2, VOCAB) for _ in range(40)] for _ in range(2)]
    return [
        random.choice(documents)[: random.choice((3, 25, 30))] + [random.randrange(2, VOCAB) for _ in range(length)]
        for length in (random.choice((1, 6, 20)) for _ in range(count))
    ]


def answers_in_disorder(
    name: str, random: Random, prompts: list[list[int]], params: list[SamplingParams], scripts: list[list[int]]
) -> tuple[list[list[int]], dict[str, int]]:
    """Sessions come at any time, some leave early and come again, in a memory for two or three of them."""
    model = packed(name)
    limits = Limits(
        max_sessions=4,
        prefill_chunk=random.choice((5, 16, 512)),
        max_draft_tokens=random.choice((0, 3, 8)),
        kv_tokens=192,
        kept_tokens=random.choice((100, 192)),
    )
    runner = Runner(model, limits)
    sessions: dict[int, Session] = {}
    waiting = list(range(len(prompts)))
    while waiting or runner.sessions:
        if waiting and random.random() < 0.5:
            number = waiting.pop(0)
            sessions[number] = Session(
                Prompt.plain(prompts[number]),
                params[number],
                proposer=any_proposer(scripts[number], random, VOCAB) if scripts[number] else NoProposer(),
                output=None,
                cache=model.new_cache(),
                end_ids=[END],
                context_length=CONTEXT,
                vocab_size=VOCAB,
            )
            runner.add(sessions[number], priority=random.choice(("interactive", "batch")))
        if runner.sessions and random.random() < 0.03:
            victim = random.choice(runner.sessions)
            victim.cancel()
            waiting.append(next(number for number, session in sessions.items() if session is victim))
        runner.step()
    counts = {
        "reused": sum(session.stats().cached_tokens for session in sessions.values()),
        "preempted": runner.load.preempted,
    }
    return [list(sessions[number].take().token_ids) for number in range(len(prompts))], counts


def check(name: str, seed: int, options: dict[str, Any], count: int = 8) -> dict[str, int]:
    random = Random(seed)
    prompts = prompts_that_begin_alike(random, count)
    params = [SamplingParams(max_tokens=TOKENS, seed=n, **options) for n in range(count)]
    if options:
        fresh = [
            answers_in_disorder(name, random, [prompt], [one], [[]])
            for prompt, one in zip(prompts, params, strict=True)
        ]
        truths = [answers[0] for answers, _ in fresh]
    else:
        truths = generate(name, prompts, max_new_tokens=TOKENS)
    answers, counts = answers_in_disorder(name, random, prompts, params, truths)
    assert answers == truths
    return counts


@pytest.mark.parametrize("name", CONFIGS)
def test_answers_are_those_of_generate_whatever_was_reused_or_lost(name):
    """Begun with another text's rows, preempted and computed again: every architecture answers as if alone."""
    counts = check(name, len(name), {})
    assert counts["reused"] > 0
    assert counts["preempted"] > 0


def test_sampled_and_penalized_answers_too():
    """Noise and penalties go by the text and the position, not by what was computed when."""
    options = {"temperature": 0.9, "top_p": 0.95, "repetition_penalty": 1.2, "frequency_penalty": 0.3}
    counts = check("gemma 3, alternating windows", 5, options)
    assert counts["reused"] > 0
    assert counts["preempted"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
@pytest.mark.parametrize("name", ["gemma 2, softcap", "mistral, sliding window", "gpt-2, learned positions"])
def test_many_schedules_show_in_no_answer(name, seed):
    check(name, seed, {})

"""The promise: with drafts, however right, wrong or branched, an answer is the one of plain decoding."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from fakes.models import CONFIGS, CONTEXT, END, VOCAB, generate, packed
from fakes.proposers import ScriptProposer, TreeProposer, any_proposer
from fakes.running import Answer, Job, answer_all

from lookup_spec.params import SamplingParams
from lookup_spec.propose.proposer import LookupProposer

WIDTHS = (1, 2, 3, 5, 16, 64)
CHUNKS = (2, 7, 512)
TOKENS = 24
PROCESSORS: dict[str, Any] = {
    "repetition_penalty": 1.2,
    "presence_penalty": 0.3,
    "frequency_penalty": 0.2,
    "logit_bias": {5: 1.5, 6: -2.0},
    "bad_words": ((4,), (7, 8), (9, 3, 9)),
    "min_tokens": 6,
}
FILTERS: dict[str, Any] = {"top_p": 0.9, "top_k": 20, "min_p": 0.02}
# What transformers' generate can do as well, and its names for it.
SHARED: dict[str, Any] = {
    "repetition_penalty": 1.3,
    "bad_words": ((4,), (7, 8), (9, 3, 9)),
    "min_tokens": 6,
}
SHARED_THERE: dict[str, Any] = {
    "repetition_penalty": 1.3,
    "bad_words_ids": [[4], [7, 8], [9, 3, 9]],
    "min_new_tokens": 6,
}


def repetitive_prompt(random: Random) -> list[int]:
    """A text that says few things again and again, of one of a few lengths."""
    words = [[random.randrange(2, VOCAB) for _ in range(random.randint(1, 5))] for _ in range(3)]
    text = [token for _ in range(40) for token in random.choice(words)]
    return text[: random.choice((1, 11, 30))]


def run(name: str, jobs: Sequence[Job], **options: Any) -> list[Answer]:
    answers = answer_all(packed(name), jobs, ends=[END], context=CONTEXT, **options)
    for answer in answers:
        assert answer.error is None, repr(answer.error)
    return answers


def tokens_of(answers: Sequence[Answer]) -> list[list[int]]:
    return [answer.token_ids for answer in answers]


def check(
    name: str, random: Random, prompts: Sequence[list[int]], params: Sequence[SamplingParams], truths: Any
) -> None:
    """Answers all prompts with random drafts, one to four at a time, and compares with the plain answers."""
    start = 0
    while start < len(prompts):
        picked = range(start, min(start + random.randint(1, 4), len(prompts)))
        start = picked.stop
        jobs = [
            Job(prompts[i], params[i], lambda script=truths[i]: any_proposer(script, random, VOCAB)) for i in picked
        ]
        setting = {"width": random.choice(WIDTHS), "chunk": random.choice(CHUNKS)}
        answers = run(name, jobs, **setting)
        for i, answer in zip(picked, answers, strict=True):
            assert answer.token_ids == truths[i], (name, setting, prompts[i], params[i])
            assert answer.finish_reason == ("length" if len(truths[i]) == TOKENS else "stop")
            assert answer.completion_tokens == len(truths[i])


def check_greedy(name: str, random: Random, count: int) -> None:
    prompts = [repetitive_prompt(random) for _ in range(count)]
    truths = generate(name, prompts, max_new_tokens=TOKENS)
    # The answers must differ among themselves for their equality to say anything.
    assert len(set(map(tuple, truths))) >= 6
    assert len({token for truth in truths for token in truth}) >= 10
    check(name, random, prompts, [SamplingParams(max_tokens=TOKENS)] * count, truths)


def check_processed(name: str, random: Random, count: int) -> None:
    prompts = [repetitive_prompt(random) for _ in range(count)]
    params = SamplingParams(max_tokens=TOKENS, **SHARED)
    truths = generate(name, prompts, max_new_tokens=TOKENS, **SHARED_THERE)
    assert all(len(truth) >= SHARED["min_tokens"] for truth in truths)
    check(name, random, prompts, [params] * count, truths)


def check_sampled(name: str, random: Random, count: int, at_once: int) -> None:
    """Our own one-node tree is the plain answer here; the greedy checks tie that to ``generate``."""
    prompts = [repetitive_prompt(random) for _ in range(count)]
    params = []
    for _ in range(count):
        temperature = random.choice((0.0, 0.7, 1.0, 1.5))
        processors = random.choice(({}, PROCESSORS))
        filters = random.choice(({}, FILTERS, {"top_p": 0.8}, {"top_k": 5}, {"min_p": 0.1}))
        params.append(
            SamplingParams(
                max_tokens=TOKENS,
                temperature=temperature,
                seed=random.randrange(2**64),
                **processors,
                **filters,
            )
        )
    jobs = [Job(prompt, param) for prompt, param in zip(prompts, params, strict=True)]
    check(name, random, prompts, params, tokens_of(run(name, jobs, width=0, at_once=at_once)))


@pytest.mark.parametrize("name", CONFIGS)
def test_greedy_answers_are_those_of_generate(name):
    """Greedy answers equal ``generate``'s for mixed prompts, widths, neighbours, chunks and drafts."""
    check_greedy(name, Random(1), 9)


@pytest.mark.parametrize("name", CONFIGS)
def test_processed_greedy_answers_are_those_of_generate(name):
    """So do they with repetition penalty, bad words and a least length, which ``generate`` knows too."""
    check_processed(name, Random(2), 7)


@pytest.mark.parametrize("name", CONFIGS)
def test_seeded_answers_do_not_depend_on_drafts(name):
    """With any processors and filters, the same seed gives the same answer with drafts and without."""
    check_sampled(name, Random(3), 9, at_once=32)


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGS)
def test_hundreds_of_answers_are_exact(name):
    """The three claims above, for hundreds of prompts each; plain sampling runs each session alone."""
    check_greedy(name, Random(4), 160)
    check_processed(name, Random(5), 100)
    check_sampled(name, Random(6), 100, at_once=1)


@pytest.mark.parametrize("name", ["llama", "gemma 2, softcap", "gpt-2, learned positions"])
def test_guesses_made_of_refused_drafts_change_nothing(name):
    """The product's own proposer hears of refused drafts and guesses from them; answers are the plain ones, greedy,
    with processors and sampled, and some of those guesses come true."""
    random = Random(9)
    prompts = [repetitive_prompt(random) for _ in range(8)]
    plain = SamplingParams(max_tokens=TOKENS)
    sampled = SamplingParams(max_tokens=TOKENS, temperature=0.8, seed=4, **PROCESSORS, **FILTERS)
    greedy = run(name, [Job(prompt, plain, LookupProposer) for prompt in prompts], width=16, chunk=7)
    assert tokens_of(greedy) == generate(name, prompts, max_new_tokens=TOKENS)
    truths = tokens_of(run(name, [Job(prompt, sampled) for prompt in prompts], width=0))
    drafted = run(name, [Job(prompt, sampled, LookupProposer) for prompt in prompts], width=16, chunk=7)
    assert tokens_of(drafted) == truths
    sources = [answer.pieces[-1].stats.sources.get("successor") for answer in (*greedy, *drafted)]
    assert any(source is not None and source.accepted for source in sources)


@pytest.mark.parametrize("width", WIDTHS)
def test_an_oracle_saves_every_forward_it_can(width):
    """Right drafts are accepted whole: ``n`` tokens take ``ceil(n / (width + 1))`` forwards, and no fewer."""
    prompts = [repetitive_prompt(Random(seed)) for seed in range(8)]
    truths = generate("llama", prompts, max_new_tokens=TOKENS)
    jobs = [
        Job(
            prompt,
            SamplingParams(max_tokens=TOKENS, ignore_eos=True),
            lambda script=truth: ScriptProposer(script),
        )
        for prompt, truth in zip(prompts, truths, strict=True)
        if len(truth) == TOKENS
    ]
    assert len(jobs) >= 4
    for answer in run("llama", jobs, width=width):
        assert answer.pieces[-1].stats.forward_passes == -(-TOKENS // (width + 1))


@pytest.mark.parametrize("name", ["llama", "gemma 3, alternating windows"])
@pytest.mark.parametrize("branching", [0.0, 0.5, 1.0])
def test_wide_and_deep_trees_of_many_sessions_are_exact(name, branching):
    """Four sessions with trees of up to 64 nodes, of any shape, in every forward give the plain answers."""
    random = Random(7)
    prompts = [repetitive_prompt(random) for _ in range(4)]
    truths = generate(name, prompts, max_new_tokens=TOKENS)
    jobs = [
        Job(
            prompt,
            SamplingParams(max_tokens=TOKENS),
            lambda script=truth: TreeProposer(script, random, VOCAB, branching=branching, right=0.8),
        )
        for prompt, truth in zip(prompts, truths, strict=True)
    ]
    assert tokens_of(run(name, jobs, width=64, chunk=5)) == truths


def test_log_probabilities_do_not_depend_on_drafts():
    """Every token's log-probability and runners-up are those of plain decoding, to rounding."""
    random = Random(8)
    prompts = [repetitive_prompt(random) for _ in range(6)]
    params = SamplingParams(max_tokens=TOKENS, logprobs=3, temperature=1.0, seed=1)
    plain = run("qwen2", [Job(prompt, params) for prompt in prompts], width=0)
    jobs = [
        Job(prompt, params, lambda script=answer.token_ids: any_proposer(script, random, VOCAB))
        for prompt, answer in zip(prompts, plain, strict=True)
    ]
    for expected, got in zip(plain, run("qwen2", jobs, width=5), strict=True):
        assert [entry.token for entry in got.logprobs] == got.token_ids == expected.token_ids
        for ours, theirs in zip(got.logprobs, expected.logprobs, strict=True):
            assert ours.logprob == pytest.approx(theirs.logprob, abs=1e-4)
            assert [token for token, _ in ours.top] == [token for token, _ in theirs.top]
            assert [value for _, value in ours.top] == pytest.approx([value for _, value in theirs.top], abs=1e-4)

"""Strict mode: a row's logits are the same to the last bit, whatever is computed beside it or was before."""

from __future__ import annotations

import copy
from functools import cache
from random import Random

import pytest
import torch
from fakes.models import CONFIGS, CONTEXT, END, VOCAB, generate, tiny
from fakes.proposers import TreeProposer, any_proposer
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup_spec.engine.runner import Runner
from lookup_spec.engine.scheduler import Limits
from lookup_spec.engine.session import Session
from lookup_spec.errors import ModelError
from lookup_spec.model.forward import PackedModel, Rows
from lookup_spec.model.half_linear import can_pack
from lookup_spec.model.steady import chains
from lookup_spec.model.steady_check import check_steady
from lookup_spec.params import SamplingParams
from lookup_spec.propose.prompt import Prompt
from lookup_spec.propose.protocol import NoProposer

DENSE = [name for name in CONFIGS if "experts" not in name]
SLOW = [name for name in DENSE if name not in ("qwen2", "gemma 3, alternating windows")]
KINDS = [torch.float32, *([torch.bfloat16] if can_pack() else [])]


@cache
def strict(name: str, dtype: torch.dtype) -> PackedModel:
    return PackedModel(copy.deepcopy(tiny(name)).to(dtype), strict=True)


def ids_of(random: Random, count: int) -> list[int]:
    return [random.randrange(VOCAB) for _ in range(count)]


def fed(model: PackedModel, ids: list[int], random: Random):
    """A cache of these tokens, computed in pieces of any size."""
    cache = model.new_cache()
    while cache.length < len(ids):
        count = random.randint(1, len(ids) - cache.length)
        model.forward([Rows(cache, ids[cache.length :][:count], range(-1, count - 1), count)])
        cache.commit(range(count))
    return cache


def alone(model: PackedModel, text: list[int], prompt: int) -> torch.Tensor:
    """The logits after the last token when the rest of the text followed its prompt token by token."""
    cache = model.new_cache()
    for ids in (text[:prompt], *([token] for token in text[prompt:])):
        [logits] = model.forward([Rows(cache, ids, range(-1, len(ids) - 1), len(ids) - 1)])
        cache.commit(range(len(ids)))
    return logits[0]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-1, 30), max_size=40))
def test_chains_hold_every_row_once_behind_its_ancestors(raw):
    """A chain's path is a row's line of ancestors, and each row is some chain's own."""
    parents = [min(parent, row - 1) for row, parent in enumerate(raw)]
    owned = []
    for chain in chains(parents):
        assert chain.path[0] == 0 or parents[chain.path[0]] == -1
        assert all(parents[row] == before for before, row in zip(chain.path, chain.path[1:], strict=False))
        owned += chain.path[len(chain.path) - chain.own :]
    assert sorted(owned) == list(range(len(parents)))


@pytest.mark.parametrize("dtype", KINDS, ids=str)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in DENSE]
)
def test_rows_of_trees_in_company_are_those_of_single_tokens(name, dtype):
    """Any node of any tree, beside prompts and other trees, after prompts cut anyhow: bit for bit the plain row."""
    random, model = Random(len(name)), strict(name, dtype)
    for length in (1, 63, 90):
        text = ids_of(random, length)
        proposer = TreeProposer((), random, VOCAB, branching=random.choice((0.0, 0.3, 1.0)), right=0.0)
        proposer.begin(Prompt.plain(text))
        tree = proposer.propose(12)
        tree_rows = Rows(fed(model, text[:-1], random), tree.tokens, tree.parents, 0)
        prompt = ids_of(random, random.randint(1, 20))
        others = Rows(model.new_cache(), prompt, range(-1, len(prompt) - 1), random.randrange(len(prompt)))
        batch = [others, tree_rows] if random.random() < 0.5 else [tree_rows, others]
        got = model.forward(batch)[batch.index(tree_rows)]
        for node in random.sample(range(len(tree)), min(2, len(tree))):
            line = [node]
            while tree.parents[line[-1]] >= 0:
                line.append(tree.parents[line[-1]])
            path = [tree.tokens[each] for each in reversed(line)]
            assert torch.equal(got[node], alone(model, text[:-1] + path, length)), (length, node)


@pytest.mark.parametrize("dtype", KINDS, ids=str)
def test_committed_branches_and_borrowed_rows_leave_no_trace(dtype):
    """A cache made of accepted branches, and one that began with another's rows, go on with the plain bits."""
    random, model = Random(3), strict("gemma 3, alternating windows", dtype)
    text = ids_of(random, 50)
    cache = fed(model, text, random)
    for _ in range(5):
        tokens = ids_of(random, 6)
        model.forward([Rows(cache, tokens, [-1, 0, 0, 2, 1, 3], 0)])
        path = random.choice(([0, 1, 4], [0, 2, 3, 5], [0]))
        cache.commit(path)
        text = text + [tokens[node] for node in path]
    borrowed = model.new_cache()
    borrowed.append(cache.rows(0, 57).clone())
    rest = text[57:]
    model.forward([Rows(borrowed, rest, range(-1, len(rest) - 1), 0)])
    borrowed.commit(range(len(rest)))
    expected = alone(model, [*text, 7], 40)
    for each in (cache, borrowed):
        [logits] = model.forward([Rows(each, [7], [-1], 0)])
        assert torch.equal(logits[0], expected)


def run(model: PackedModel, prompts: list[list[int]], scripts: list[list[int]], random: Random, limits: Limits):
    """Tokens and log-probabilities of every answer, and how much was reused and preempted."""
    runner = Runner(model, limits)
    sessions = [
        Session(
            Prompt.plain(prompt),
            SamplingParams(max_tokens=40, logprobs=3),
            proposer=any_proposer(script, random, VOCAB) if script else NoProposer(),
            output=None,
            cache=model.new_cache(),
            end_ids=[END],
            context_length=CONTEXT,
            vocab_size=VOCAB,
        )
        for prompt, script in zip(prompts, scripts, strict=True)
    ]
    waiting = list(sessions)
    while waiting or runner.sessions:
        if waiting and random.random() < 0.5:
            runner.add(waiting.pop(0), priority=random.choice(("interactive", "batch")))
        runner.step()
    pieces = [session.take() for session in sessions]
    reused = sum(session.stats().cached_tokens for session in sessions)
    return [(piece.token_ids, piece.logprobs) for piece in pieces], reused, runner.load.preempted


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("qwen2", KINDS[-1]),
        pytest.param("mistral, sliding window", torch.float32, marks=pytest.mark.slow),
        pytest.param("gemma 2, softcap", KINDS[-1], marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_log_probabilities_are_the_same_bits_whatever_was_reused_or_lost(name, dtype):
    """Sessions that share passes and prefixes, and are preempted, say exactly what each says alone."""
    random, model = Random(len(name)), strict(name, dtype)
    document = ids_of(random, 40)
    prompts = [document[: random.choice((25, 40))] + ids_of(random, random.choice((1, 6, 20))) for _ in range(6)]
    solo = [run(model, [prompt], [[]], random, Limits(max_draft_tokens=0, max_sessions=1))[0][0] for prompt in prompts]
    limits = Limits(max_sessions=2, prefill_chunk=16, max_draft_tokens=8, kv_tokens=192, kept_tokens=128)
    answers, reused, preempted = run(model, prompts, [list(tokens) for tokens, _ in solo], random, limits)
    assert answers == solo
    assert reused > 0
    assert preempted > 0


def test_strict_answers_are_those_of_generate():
    """Strict mode changes bits, not answers."""
    prompts = [ids_of(Random(9), 20)]
    model = strict("llama", torch.float32)
    answers, _, _ = run(model, prompts, [[]], Random(1), Limits())
    assert [list(tokens) for tokens, _ in answers] == generate("llama", prompts, max_new_tokens=40)


@pytest.mark.parametrize("dtype", KINDS, ids=str)
def test_the_check_passes_here(dtype):
    """What the other tests find out at length, the check finds out at once."""
    check_steady(strict("qwen2", dtype))


def test_the_check_refuses_a_machine_that_does_not_keep_it(monkeypatch):
    """Rows that depend on how many there are, be it in the last bit, are found and told."""
    model = PackedModel(copy.deepcopy(tiny("qwen2")), strict=True)
    forward = model.forward
    monkeypatch.setattr(
        model, "forward", lambda batch: [logits * (1 + len(batch[0].tokens) * 2.0**-23) for logits in forward(batch)]
    )
    with pytest.raises(ModelError, match=r"alone and in a chain, by up to .*turn it off"):
        check_steady(model)


@pytest.mark.parametrize("name", [name for name in CONFIGS if "experts" in name])
def test_experts_are_refused(name):
    """Their groups are as large as a pass makes them, so nothing is promised for them."""
    with pytest.raises(ModelError, match="has experts"):
        PackedModel(copy.deepcopy(tiny(name)), strict=True)

"""The packed pass against transformers' own eager attention, one whole text at a time."""

from __future__ import annotations

import copy
from random import Random

import pytest
import torch
from fakes.models import CONFIGS, VOCAB, eager_logits, packed, tiny
from fakes.proposers import TreeProposer
from transformers import AutoModelForCausalLM, GptOssConfig

from lookup_spec.errors import ModelError
from lookup_spec.model.forward import PackedModel, Rows
from lookup_spec.model.linear import WideLinear, widen_linears
from lookup_spec.propose.prompt import Prompt


def random_ids(random: Random, count: int) -> list[int]:
    return [random.randrange(VOCAB) for _ in range(count)]


def random_tree(random: Random, text: list[int], size: int):
    proposer = TreeProposer((), random, VOCAB, branching=random.choice((0.0, 0.4, 1.0)), right=0.0)
    proposer.begin(Prompt.plain(text))
    return proposer.propose(size)


def line_to(tree, node: int) -> list[int]:
    """The nodes from node 0 to this one."""
    line = []
    while node >= 0:
        line.append(node)
        node = tree.parents[node]
    return line[::-1]


def feed(model: PackedModel, cache, ids: list[int]) -> torch.Tensor:
    (logits,) = model.forward([Rows(cache, ids, range(-1, len(ids) - 1), 0)])
    cache.commit(range(len(ids)))
    return logits


@pytest.mark.parametrize("name", CONFIGS)
def test_every_row_is_the_plain_pass_over_its_own_path(name):
    """Chunks, single rows and trees of several sessions share a pass; logits are the eager ones to 1e-4."""
    random, model = Random(1), packed(name)
    texts = [random_ids(random, length) for length in (30, 12, 3)]
    trees = [random_tree(random, text, size) for text, size in zip(texts, (20, 6, 0), strict=True)]
    caches = [model.new_cache() for _ in texts]
    for text, cache in zip(texts, caches, strict=True):
        feed(model, cache, text[:-1])
    new_text, new_cache = random_ids(random, 9), model.new_cache()
    batch = [Rows(cache, tree.tokens, tree.parents, 0) for cache, tree in zip(caches, trees, strict=True)]
    *rows, prefill = model.forward([*batch, Rows(new_cache, new_text, range(-1, 8), 4)])
    torch.testing.assert_close(prefill, eager_logits(name, new_text)[4:], atol=1e-4, rtol=1e-4)
    for text, tree, logits in zip(texts, trees, rows, strict=True):
        assert logits.shape == (len(tree), VOCAB)
        assert logits.dtype == torch.float32
        for leaf in set(range(len(tree))) - set(tree.parents):
            line = line_to(tree, leaf)
            path = [tree.tokens[node] for node in line]
            expected = eager_logits(name, text[:-1] + path)[-len(path) :]
            torch.testing.assert_close(logits[line], expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", CONFIGS)
def test_committed_branches_are_as_good_as_a_fresh_text(name):
    """After branches were kept and others forgotten, again and again, the next row is the plain one."""
    random, model = Random(2), packed(name)
    text, cache = random_ids(random, 5), model.new_cache()
    feed(model, cache, text[:-1])
    for _ in range(6):
        tree = random_tree(random, text, 12)
        model.forward([Rows(cache, tree.tokens, tree.parents, 0)])
        line = line_to(tree, random.randrange(len(tree)))
        cache.commit(line)
        text = [*text[:-1], *(tree.tokens[node] for node in line), random.randrange(VOCAB)]
        assert cache.length == len(text) - 1
    logits = feed(model, cache, text[-1:])
    torch.testing.assert_close(logits[-1], eager_logits(name, text)[-1], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("chunk", [1, 2, 5, 40])
def test_chunks_of_a_prompt_add_up(chunk):
    """A prompt fed in pieces gives the logits of the prompt fed at once."""
    random = Random(3)
    for name in ("mistral, sliding window", "gemma 2, softcap"):
        model, text = packed(name), random_ids(random, 40)
        cache = model.new_cache()
        got = torch.cat([feed(model, cache, text[at : at + chunk]) for at in range(0, len(text), chunk)])
        torch.testing.assert_close(got, eager_logits(name, text), atol=1e-4, rtol=1e-4)


def test_no_rows_wanted_gives_no_logits():
    """A pass of prefill chunks alone returns empty results, one for each session."""
    model = packed("llama")
    batch = [Rows(model.new_cache(), [3, 4], [-1, 0], 2), Rows(model.new_cache(), [5], [-1], 1)]
    assert [tuple(logits.shape) for logits in model.forward(batch)] == [(0, VOCAB), (0, VOCAB)]


def test_a_truncated_cache_forgets():
    """What was cut off leaves no trace in later rows."""
    model, random = packed("qwen3"), Random(4)
    text, cache = random_ids(random, 20), model.new_cache()
    feed(model, cache, text)
    cache.truncate(8)
    other = random_ids(random, 6)
    expected = eager_logits("qwen3", text[:8] + other)[8:]
    torch.testing.assert_close(feed(model, cache, other), expected, atol=1e-4, rtol=1e-4)


def test_attention_sinks_are_refused_when_the_model_is_taken():
    """GPT-OSS passes sinks to its attention; the model is refused at once, by the name of the feature."""
    config = GptOssConfig(
        vocab_size=VOCAB,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        num_local_experts=2,
        num_experts_per_tok=1,
        sliding_window=8,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=2,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
    )
    model = AutoModelForCausalLM.from_config(config).eval()
    with pytest.raises(ModelError, match="s_aux"):
        PackedModel(model)


def test_a_bfloat16_model_with_upcast_layers_is_near_its_float32_self():
    """On a CPU without bfloat16 arithmetic nothing but the weights' rounding comes between the two."""
    model = copy.deepcopy(tiny("qwen2")).to(torch.bfloat16)
    rounded = copy.deepcopy(model).float()
    widen_linears(model)
    assert any(isinstance(module, WideLinear) for module in model.modules())
    ids = torch.tensor([random_ids(Random(5), 12)])
    with torch.no_grad():
        ours, exact = model(ids).logits.float(), rounded(ids).logits
    assert torch.corrcoef(torch.stack([ours.flatten(), exact.flatten()]))[0, 1] > 0.999

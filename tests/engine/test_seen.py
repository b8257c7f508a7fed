"""What proposers are told about the trees that were checked."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
import torch
from fakes.models import END, VOCAB, eager_logits, generate, packed
from fakes.proposers import ScriptProposer, TreeProposer
from fakes.running import Job, answer_all

from lookup_spec.model.runner_ups import runner_ups
from lookup_spec.params import SamplingParams
from lookup_spec.propose.seen import rejected

COUNT = 3


class Listener(TreeProposer):
    """Keeps what it hears, with the text that each tree followed."""

    def __init__(self, script, random, count):
        super().__init__(script, random, VOCAB, branching=0.5, right=0.7)
        self.runner_ups = count
        self.text = []
        self.heard = []

    def begin(self, prompt):
        super().begin(prompt)
        self.text = list(prompt.ids)

    def observe(self, ids, seen=None):
        super().observe(ids, seen)
        self.heard.append((list(self.text), seen))
        self.text.extend(ids)


def listen(count, params, chunk=512):
    prompt = [5, 6, 7, 5, 6, 7, 5, 6]
    [script] = generate("llama", [prompt], max_new_tokens=12)
    listener = Listener(script, Random(2), count)
    [answer] = answer_all(packed("llama"), [Job(prompt, params, lambda: listener)], width=8, ends=[END], context=192,
                          chunk=chunk)  # fmt: skip
    assert answer.error is None
    return script, answer.token_ids, listener.heard


def path(tree, node):
    """Tokens from node 0 to a node."""
    tokens = []
    while node >= 0:
        tokens.append(tree.tokens[node])
        node = tree.parents[node]
    return tokens[::-1]


@pytest.mark.parametrize("chunk", [3, 512])
def test_every_refused_node_comes_with_the_models_likeliest_next_tokens(chunk):
    """Ids and probabilities are those of a plain forward over the text up to the node."""
    _, _, heard = listen(COUNT, SamplingParams(max_tokens=12), chunk)
    refused = 0
    for text, seen in heard[:-1]:
        if seen is None:
            continue
        nodes = rejected(seen.tree, seen.path)
        assert sorted([*nodes, *seen.path]) == list(range(len(seen.tree)))
        refused += len(nodes)
        for row, node in enumerate(nodes):
            expected = eager_logits("llama", [*text[:-1], *path(seen.tree, node)])[-1].softmax(-1)
            values, ids = expected.topk(COUNT)
            assert seen.ids[row].tolist() == ids.tolist()
            np.testing.assert_allclose(seen.probabilities[row], values.numpy(), rtol=1e-3)
    assert refused > 5
    assert heard[-1][1] is None, "nothing is worked out for an answer that has ended"


def test_the_path_is_what_was_accepted():
    """The nodes of the path but the first are the tokens that were chosen, but for the last one."""
    _, answer, heard = listen(COUNT, SamplingParams(max_tokens=12))
    for text, seen in heard[:-1]:
        if seen is not None:
            new = [seen.tree.tokens[node] for node in seen.path[1:]]
            assert answer[len(text) - 8 :][: len(new)] == new


def test_nothing_is_worked_out_where_nothing_is_refused():
    """A draft that is right throughout, as in a long copy, costs no look at the logits beyond the choices."""
    prompt = [5, 6, 7, 5, 6, 7, 5, 6]
    [script] = generate("llama", [prompt], max_new_tokens=12)

    class Oracle(ScriptProposer):
        runner_ups = COUNT

        def observe(self, ids, seen=None):
            super().observe(ids, seen)
            assert seen is None

    [answer] = answer_all(packed("llama"), [Job(prompt, SamplingParams(max_tokens=12), lambda: Oracle(script))],
                          width=4, ends=[END], context=192)  # fmt: skip
    assert answer.error is None
    assert answer.token_ids == script


def test_sampling_settings_do_not_show_in_what_is_seen():
    """Temperature and penalties change the choice, not the distribution that proposers hear of."""
    params = SamplingParams(max_tokens=12, temperature=0.8, seed=3, repetition_penalty=1.5)
    _, _, heard = listen(COUNT, params)
    text, seen = next(item for item in heard if item[1] is not None)
    [node, *_] = rejected(seen.tree, seen.path)
    expected = eager_logits("llama", [*text[:-1], *path(seen.tree, node)])[-1].softmax(-1)
    np.testing.assert_allclose(seen.probabilities[0], expected.topk(COUNT).values.numpy(), rtol=1e-3)


def test_a_proposer_that_wants_none_hears_none():
    """With ``runner_ups`` 0 nothing is computed, and the answer is the same."""
    script, quiet, heard = listen(0, SamplingParams(max_tokens=12))
    assert all(seen is None for _, seen in heard)
    assert quiet == listen(COUNT, SamplingParams(max_tokens=12))[1] == script


def test_more_runner_ups_than_tokens_give_all_tokens():
    """A small vocabulary is given whole, its probabilities adding up to one."""
    ids, probabilities = runner_ups(torch.tensor([[1.0, 3.0, 2.0]]), 5)
    assert ids.tolist() == [[1, 2, 0]]
    assert probabilities.sum() == pytest.approx(1.0)

"""Weights packed in sixteen bits: no weight changes, and answers are those of float32 arithmetic."""

from __future__ import annotations

import copy
from functools import cache
from random import Random

import pytest
import torch
from fakes.models import CONFIGS, CONTEXT, END, PAD, VOCAB, tiny, until_end
from fakes.proposers import any_proposer
from fakes.running import Job, answer_all
from torch import nn

from lookup_spec.model.forward import PackedModel
from lookup_spec.model.half_linear import HalfLinear, JointLinear, can_pack, pack_linears
from lookup_spec.params import SamplingParams

pytestmark = pytest.mark.skipif(not can_pack(), reason="PyTorch has no such kernels for this processor")

TOKENS = 24
PACKED = [name for name in CONFIGS if "experts" not in name]


def weight(rows: int, columns: int, size: float = 1.0, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return (torch.randn(rows, columns, generator=torch.Generator().manual_seed(rows)) * size).to(dtype)


def rounded(name: str) -> torch.nn.Module:
    """A model of bfloat16 weights."""
    return copy.deepcopy(tiny(name)).to(torch.bfloat16)


@cache
def in_float32(name: str) -> torch.nn.Module:
    """The same weights in a stock model that computes in float32, but for what its embedding layer itself does."""
    model = rounded(name)
    embedding = copy.deepcopy(model.get_input_embeddings())
    embedding.register_forward_hook(lambda _module, _inputs, output: output.float())
    model = model.float()
    model.set_input_embeddings(embedding)
    return model


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("size", [1.0, 1e-3, 100.0])
@pytest.mark.parametrize("shape", [(1, 1), (300, 257), (37, 40), (16, 896), (8200, 3)], ids=str)
def test_no_weight_changes(shape, size, dtype):
    """What is multiplied is bit for bit what was given, small weights, zeros and negative ones included."""
    given = weight(*shape, size, dtype)
    given[0, :4] = torch.tensor([0.0, -0.0, float(given.abs().max()) * 2.0**-20, -float(given.abs().max())])[
        : shape[1]
    ].to(dtype)
    assert torch.equal(HalfLinear(given, None).unpacked(), given.float())


@pytest.mark.parametrize("size", [1e-30, 1e-12, 1e30])
def test_only_the_spread_of_weights_matters(size):
    """Weights far outside float16's range are kept, for their layer is scaled."""
    given = weight(30, 40, size)
    assert torch.equal(HalfLinear(given, None).unpacked(), given.float())


def test_specks_are_kept_to_what_float32_sums_could_tell():
    """A weight below 2**-32 of its layer's largest is wrong by at most 2**-40 of that."""
    given = weight(8, 8)
    given[2, 3], given[4, 5] = 4.0, 1.3e-12
    assert float((HalfLinear(given, None).unpacked() - given.float()).abs().max()) <= 4.0 * 2.0**-40


def test_a_layer_of_zeros_gives_its_bias():
    """Nothing can be scaled by the largest of no weights."""
    bias = torch.arange(3.0)
    assert torch.equal(HalfLinear(torch.zeros(3, 4), bias)(torch.ones(2, 4)), bias.expand(2, 3))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("width", [1, 2, 3, 6, 7, 16, 65])
def test_sums_are_those_of_float32(width, bias):
    """At every width the result is exact to float32's own error."""
    given, add = weight(129, 700), torch.randn(129) if bias else None
    rows = torch.randn(width, 700, generator=torch.Generator().manual_seed(width))
    expected = rows.double() @ given.double().t() + (0.0 if add is None else add.double())
    size = rows.double().abs() @ given.double().abs().t() + 1
    got = HalfLinear(given, add)(rows[None])[0]
    assert got.dtype == torch.float32
    assert ((got.double() - expected).abs() <= 2e-6 * size).all()


def test_layers_of_many_outputs_are_as_one():
    """A head that is packed in parts gives the outputs, biases and leading dimensions of one."""
    given, add = weight(16_400, 5), torch.randn(16_400)
    rows = torch.randn(2, 3, 5)
    got = HalfLinear(given, add)(rows)
    assert got.shape == (2, 3, 16_400)
    torch.testing.assert_close(got, nn.functional.linear(rows, given.float(), add))


@pytest.mark.parametrize("name", PACKED)
def test_answers_are_those_of_generate_in_float32(name):
    """However right or wrong the drafts: token for token what transformers answers with these weights in float32."""
    random, model = Random(len(name)), PackedModel(rounded(name))
    assert any(isinstance(module, HalfLinear) for module in model.model.modules())
    prompts = [[random.randrange(2, VOCAB) for _ in range(length)] for length in (1, 9, 30)]
    truths = []
    for prompt in prompts:
        ids = torch.tensor([prompt])
        out = in_float32(name).generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=False, pad_token_id=PAD, max_new_tokens=TOKENS
        )
        truths.append(until_end(out[0, len(prompt) :].tolist()))
    for width in (0, 5, 32):
        jobs = [
            Job(prompt, SamplingParams(max_tokens=TOKENS), lambda script=truth: any_proposer(script, random, VOCAB))
            for prompt, truth in zip(prompts, truths, strict=True)
        ]
        answers = answer_all(model, jobs, width=width, ends=[END], context=CONTEXT, chunk=7)
        assert [answer.token_ids for answer in answers] == truths


@pytest.mark.parametrize("name", PACKED)
def test_no_second_copy_of_the_weights_stays(name):
    """Besides the packed layers only embeddings and vectors are left."""
    model = rounded(name)
    assert pack_linears(model)
    embeddings = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    assert not [name for name, left in model.named_parameters() if left.dim() > 1 and id(left) not in embeddings]


@pytest.mark.parametrize("name", [name for name in CONFIGS if "experts" in name])
def test_experts_in_one_tensor_are_left_alone(name):
    """A mixture of experts is not packed, and nothing of it is touched."""
    model = rounded(name)
    before = [(key, tensor.dtype) for key, tensor in model.state_dict().items()]
    assert not pack_linears(model)
    assert [(key, tensor.dtype) for key, tensor in model.state_dict().items()] == before


def test_the_twin_computes_in_float32():
    """The model that answers are compared with has nothing of bfloat16 but its embedding's table."""
    kinds = {parameter.dtype for name, parameter in in_float32("llama").named_parameters() if "embed" not in name}
    assert kinds == {torch.float32}


@pytest.mark.parametrize("width", [1, 2, 3, 7, 16, 65])
def test_layers_that_share_their_rows_give_what_each_gives_alone(width):
    """To the last bit, in whatever order and with whatever rows they are asked."""
    torch.manual_seed(width)
    parent = nn.ModuleDict(
        {"q_proj": nn.Linear(70, 96), "k_proj": nn.Linear(70, 32, bias=False), "v_proj": nn.Linear(70, 32)}
    ).to(torch.bfloat16)
    alone = {name: HalfLinear(layer.weight, layer.bias) for name, layer in parent.items()}
    assert pack_linears(parent)
    assert all(isinstance(layer, JointLinear) for layer in parent.values())
    rows, others = torch.randn(1, width, 70), torch.randn(1, width, 70)
    for name, given in [("q_proj", rows), ("k_proj", rows), ("v_proj", rows), ("v_proj", others), ("q_proj", rows),
                        ("q_proj", rows), ("k_proj", others), ("q_proj", others)]:  # fmt: skip
        assert torch.equal(parent[name](given), alone[name](given)), name


def test_layers_are_joined_in_models_that_have_such():
    """And only there."""
    for name, joint in (("qwen2", 5), ("phi-3", 0)):
        model = rounded(name)
        assert pack_linears(model)
        layer = model.model.layers[0]
        assert sum(isinstance(module, JointLinear) for module in layer.modules()) == joint

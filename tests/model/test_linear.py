"""Linear layers with float32 sums at any width, against float64."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from lookup_spec.model.linear import WideLinear, widen_linears

UNIT = 2.0**-8  # relative rounding of bfloat16


def make(features: tuple[int, int], *, bias: bool) -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(*features, bias=bias).to(torch.bfloat16)


def rows_of(width: int, features: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(width, features, generator=torch.Generator().manual_seed(width)).to(dtype)


def exact(linear: nn.Linear, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The product in float64, and the size of the terms that it sums."""
    weight, wide = linear.weight.double(), rows.double()
    bias = 0.0 if linear.bias is None else linear.bias.double()
    return wide @ weight.t() + bias, wide.abs() @ weight.abs().t() + abs(bias)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("features", [(96, 32), (64, 256), (40, 700)], ids=str)
@pytest.mark.parametrize("width", [5, 16, 65])
@torch.no_grad()
def test_wide_passes_round_once(width, features, bias):
    """From five rows on, the result is the exact one rounded to bfloat16, to float32's own error."""
    linear = make(features, bias=bias)
    rows = rows_of(width, features[0], torch.bfloat16)
    expected, size = exact(linear, rows)
    got = WideLinear(linear)(rows)
    assert got.dtype == torch.bfloat16
    assert got.shape == (width, features[1])
    allowed = UNIT * expected.abs() + 1e-5 * size
    assert ((got.double() - expected).abs() <= allowed).all()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("width", [1, 2, 5, 16, 65])
@torch.no_grad()
def test_float32_stays_float32(width, bias):
    """With a float32 weight the result is exact to float32's own error at every width."""
    torch.manual_seed(0)
    linear = nn.Linear(700, 40, bias=bias)
    rows = rows_of(width, 700, torch.float32)
    expected, size = exact(linear, rows)
    got = WideLinear(linear)(rows)
    assert got.dtype == torch.float32
    assert got.is_contiguous()
    assert ((got.double() - expected).abs() <= 1e-5 * size).all()


@pytest.mark.parametrize("width", [1, 2, 4])
@torch.no_grad()
def test_narrow_passes_stay_within_the_dtype(width):
    """Up to four rows go through the stock kernel, whose error is a few roundings of bfloat16."""
    linear = make((96, 700), bias=True)
    rows = rows_of(width, 96, torch.bfloat16)
    expected, size = exact(linear, rows)
    got = WideLinear(linear)(rows)
    assert ((got.double() - expected).abs() <= 4 * UNIT * size).all()


@torch.no_grad()
def test_a_row_is_the_same_whatever_stands_beside_it():
    """Rows of a wide pass agree with the same rows of any other wide pass to one rounding."""
    linear = make((64, 600), bias=True)
    layer, rows = WideLinear(linear), rows_of(64, 64, torch.bfloat16)
    whole = layer(rows).double()
    for width in (5, 7, 16, 33):
        torch.testing.assert_close(layer(rows[:width]).double(), whole[:width], rtol=2 * UNIT, atol=1e-5)


@torch.no_grad()
def test_leading_dimensions_are_kept():
    """``[batch, rows, in]`` becomes ``[batch, rows, out]``."""
    layer = WideLinear(make((16, 20), bias=False))
    rows = rows_of(12, 16, torch.bfloat16)
    assert torch.equal(layer(rows.reshape(2, 6, 16)), layer(rows).reshape(2, 6, 20))


def test_layers_are_replaced_and_weights_shared():
    """Every plain linear layer is replaced in place; all others stay, and nothing is copied."""

    class Special(nn.Linear):
        pass

    model = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.ReLU()), Special(4, 4))
    weights = [model[0].weight, model[1][0].weight]
    widen_linears(model)
    assert type(model[0]) is type(model[1][0]) is WideLinear
    assert model[0].weight is weights[0]
    assert model[1][0].weight is weights[1]
    assert type(model[2]) is Special

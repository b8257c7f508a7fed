"""Padding: passes have numbers of rows for which linear layers treat a row alike, and no more rows than that needs."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from lookup_spec.errors import ModelError
from lookup_spec.model.half_linear import HalfLinear, can_pack
from lookup_spec.model.linear import PrepackedLinear
from lookup_spec.model.padding import NONE, SIXES, SIXTEENS, Padding, find_padding

KINDS = [PrepackedLinear, *([HalfLinear] if can_pack() else [])]


class Uneven(nn.Linear):
    """Its sums are others at some numbers of rows."""

    def __init__(self, other: range) -> None:
        super().__init__(8, 4)
        self._other = other

    def forward(self, rows: Tensor) -> Tensor:
        # Sixteenths are summed without rounding in any order, so nothing but this makes a difference.
        weight = self.weight.mul(16).round() / 16
        return rows.mul(16).round() / 16 @ weight.t() * (2 if len(rows) in self._other else 1)


@pytest.mark.parametrize("padding", [NONE, SIXES, SIXTEENS], ids=str)
def test_a_width_is_the_least_allowed_one_that_holds_the_rows(padding: Padding):
    """Padding to a width that is allowed changes nothing more."""
    allowed = {*range(padding.least, padding.multiple), *range(padding.multiple, 500, padding.multiple)}
    for rows in range(1, 400):
        assert padding.width(rows) == min(width for width in allowed if width >= rows)


@pytest.mark.parametrize(
    ("other", "found"),
    [(range(0), NONE), (range(1, 3), SIXES), (range(7, 9), SIXES), (range(3, 5), SIXTEENS), (range(1, 16), SIXTEENS)],
    ids=str,
)
def test_as_much_is_padded_as_a_layer_needs(other: range, found: Padding):
    """Whatever kernels do at small widths."""
    assert find_padding(Uneven(other)) == found


def test_kernels_that_no_padding_makes_even_are_told():
    """Instead of promising what they do not keep."""
    with pytest.raises(ModelError, match=r"different widths.*turn it off"):
        find_padding(Uneven(range(48, 49)))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_padded_layers_treat_rows_alike_at_any_width(kind: type[nn.Module], threads: int):
    """At widths that were not tried, and for larger layers, too."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        weights = [
            torch.randn(outputs, 130).bfloat16().to(torch.bfloat16 if kind is HalfLinear else torch.float32)
            for outputs in (70, 700)
        ]
        layers = nn.ModuleList(kind(weight, torch.randn(len(weight))) for weight in weights)
        padding = find_padding(layers)
        assert padding in ((NONE, SIXES) if kind is HalfLinear else (NONE,))
        rows = torch.randn(420, 130)
        for layer in layers:
            whole = layer(rows)
            for width in range(1, 400):
                padded = padding.width(width)
                assert torch.equal(layer(rows[:padded])[:width], whole[:width]), width
    finally:
        torch.set_num_threads(before)

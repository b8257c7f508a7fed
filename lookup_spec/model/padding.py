"""To how many rows passes are padded, so that linear layers treat a row alike in all of them.

Kernels take a few rows at a time, as many as fit into a processor's registers, and some go another way through the sums
for what remains. Which do is theirs to know: FBGEMM's for AVX2 take six rows and are different for a remainder of one
or two, those for AVX-512 take fourteen and are never different; oneDNN's are different below sixteen rows of bfloat16.
So it is tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lookup_spec.errors import ModelError
from lookup_spec.model.half_linear import HalfLinear
from lookup_spec.model.linear import PrepackedLinear

_WIDEST = 144  # rows that layers are tried with; a multiple of all that passes are padded to
_ALL = 33  # up to here every number of rows is tried, beyond it one in so many
_EVERY = 5


@dataclass(frozen=True, slots=True)
class Padding:
    """Numbers of rows that passes may have.

    Attributes:
        least: rows.
        multiple: from this many on, numbers are its multiples.
    """

    least: int
    multiple: int

    def width(self, rows: int) -> int:
        """The least number that is no smaller."""
        return max(rows, self.least) if rows <= self.multiple else -(-rows // self.multiple) * self.multiple


NONE, SIXES, SIXTEENS = Padding(1, 1), Padding(3, 6), Padding(16, 16)


@torch.no_grad()
def find_padding(model: nn.Module) -> Padding:
    """The cheapest padding with which a row's products have the same bits in a pass of any width.

    Tried with random rows on the smallest linear layer of each number of inputs, since sums are as long as these.

    Raises:
        ModelError: there is none.
    """
    generator = torch.Generator().manual_seed(0)
    trials = [_Trial(layer, generator) for layer in _smallest(model)]
    for padding in (NONE, SIXES, SIXTEENS):
        if all(trial.keeps(padding) for trial in trials):
            return padding
    raise ModelError(
        "This machine's kernels multiply a row differently in passes of different widths, so that strict mode could "
        "not keep what it promises; turn it off."
    )


class _Trial:
    """One layer's products of the same rows in company of more and fewer."""

    def __init__(self, layer: nn.Module, generator: torch.Generator) -> None:
        self._layer = layer
        taken = layer.weight.dtype if isinstance(layer, nn.Linear) else layer.takes
        self._rows = torch.randn(_WIDEST, _inputs(layer), generator=generator).to(taken)  # type: ignore[arg-type]
        self._whole: Tensor = layer(self._rows)

    def keeps(self, padding: Padding) -> bool:
        widths = dict.fromkeys(padding.width(rows) for rows in _tried())
        return all(torch.equal(self._layer(self._rows[:width]), self._whole[:width]) for width in widths)


def _tried() -> Iterator[int]:
    yield from range(1, _ALL)
    yield from range(_ALL, _WIDEST, _EVERY)


def _smallest(model: nn.Module) -> list[nn.Module]:
    found: dict[tuple[type[nn.Module], int], nn.Module] = {}
    for module in model.modules():
        if isinstance(module, (nn.Linear, HalfLinear, PrepackedLinear)):
            key = type(module), _inputs(module)
            found[key] = min(found.get(key, module), module, key=lambda layer: int(layer.out_features))
    return list(found.values())


def _inputs(layer: nn.Module) -> int:
    size: int = layer.in_features  # type: ignore[assignment]  # every linear layer has it
    return size

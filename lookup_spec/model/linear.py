"""Linear layers for a few dozen rows on a CPU, the width at which drafts are checked.

The stock kernels are made for one row or for hundreds. Between those, multiplying the weight by the transposed rows
splits the work along the weight, so each part of it is read once and by one core. A CPU that stores bfloat16 but cannot
compute in it is worse off: its stock kernel costs the same for every row, and checking a draft would cost as much as
decoding it. There, a block of the weight is unpacked to float32 while it sits in the cache.

Measured with two cores and AVX2, 16 rows against one: stock bfloat16 13 times the time, unpacked blocks 3 to 4 times.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

_BLOCK = 256  # output features unpacked at a time: the block stays in the second-level cache
_FEW = {torch.float32: 1, torch.bfloat16: 4}  # up to this many rows the stock kernel is faster


def native_bfloat16() -> bool:
    """Whether this CPU multiplies bfloat16 matrices in hardware."""
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported()) and bool(
        torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    )


class WideLinear(nn.Module):
    """``x @ weight.T + bias`` with float32 sums, quick for any number of rows.

    Args:
        linear: the layer whose weight and bias are used, not copied; float32 or bfloat16.
    """

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.weight = linear.weight
        self.bias = linear.bias
        self._few = _FEW[linear.weight.dtype]

    def forward(self, rows: Tensor) -> Tensor:
        """``[..., in] -> [..., out]`` in the dtype of ``rows``."""
        flat = rows.reshape(-1, rows.shape[-1])
        if flat.shape[0] <= self._few:
            return nn.functional.linear(rows, self.weight, self.bias)
        columns = flat.float().t()
        product = self.weight @ columns if self.weight.dtype == torch.float32 else self._unpacked(columns)
        if self.bias is not None:
            product += self.bias[:, None]
        return product.to(rows.dtype).t().contiguous().reshape(*rows.shape[:-1], -1)

    def _unpacked(self, columns: Tensor) -> Tensor:
        features = self.weight.shape[0]
        product = columns.new_empty((features, columns.shape[1]))
        for start in range(0, features, _BLOCK):
            block = self.weight[start : start + _BLOCK].float()
            torch.mm(block, columns, out=product[start : start + _BLOCK])
        return product


def widen_linears(model: nn.Module) -> None:
    """Replaces every linear layer of ``model`` in place; weights stay shared."""
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is nn.Linear and child.weight.dtype in _FEW:
                setattr(parent, name, WideLinear(child))


class PrepackedLinear(nn.Module):
    """``x @ weight.T + bias`` by oneDNN, with the weight in that library's own order.

    Its kernels compute a row alike however many there are, to the last bit, which those of other libraries do not.

    Args:
        weight: ``[out, in]`` in the type that is taken; copied.
        bias: ``[out]``, or None.

    Attributes:
        takes: the type of its rows, and of what comes out.
    """

    takes = torch.float32

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.out_features, self.in_features = weight.shape
        self._weight = torch.ops.mkldnn._reorder_linear_weight(weight.detach().contiguous(), None)
        self._bias = bias

    def forward(self, rows: Tensor) -> Tensor:
        """``[..., in] -> [..., out]``."""
        out: Tensor = torch.ops.mkldnn._linear_pointwise(rows, self._weight, self._bias, "none", [], "")
        return out


class PrepackedBfloat16(PrepackedLinear):
    """The same on a CPU that multiplies bfloat16; there rows are alike only from sixteen on.

    The stock kernel is weak there at one row. Not run yet on such a CPU; the check of strict mode tries it at a start.
    """

    takes = torch.bfloat16


def only_linear(model: nn.Module) -> bool:
    """Whether all matrices of a model are those of linear layers and embeddings."""
    known = {
        id(module.weight)
        for module in model.modules()
        if type(module) in (nn.Linear, Conv1D) or isinstance(module, nn.Embedding)
    }
    return all(parameter.dim() < 2 or id(parameter) in known for parameter in model.parameters())


@dataclass(frozen=True, slots=True)
class Making:
    """Layers that are to be put in the place of others.

    Attributes:
        weights: how many numbers they have.
        run: makes them and puts them there.
    """

    weights: int
    run: Callable[[], None]


def replace_linears(model: nn.Module, make: Callable[[Tensor, Tensor | None], nn.Module]) -> None:
    """Puts a layer made from weight ``[out, in]`` and bias in the place of every linear layer of ``model``."""
    make_all(replacing(model, make))


def replacing(model: nn.Module, make: Callable[[Tensor, Tensor | None], nn.Module]) -> list[Making]:
    """As :func:`replace_linears`, but nothing is done yet."""

    def one(parent: nn.Module, name: str, layer: Any) -> Making:
        def run() -> None:
            setattr(parent, name, make(layer.weight.t() if type(layer) is Conv1D else layer.weight, layer.bias))

        return Making(layer.weight.numel(), run)

    return [
        one(parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if type(child) in (nn.Linear, Conv1D)
    ]


def make_all(makings: list[Making]) -> None:
    """Makes layers, several at a time, as packing weights keeps one core busy for a while.

    Large ones first, so that no core is left alone with the head of the model.

    Args:
        makings: emptied, so that the old layers are let go of one by one and only a few are in memory twice.
    """
    makings.sort(key=lambda making: making.weights)
    threads = torch.get_num_threads()
    try:
        # Each works alone: threads of theirs would wait for each other, and do so by keeping the cores busy.
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            made = []
            while makings:
                made.append(pool.submit(makings.pop().run))
            for each in made:
                each.result()
    finally:
        torch.set_num_threads(threads)

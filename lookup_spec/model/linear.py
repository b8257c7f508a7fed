"""Linear layers for a few dozen rows on a CPU, the width at which drafts are checked.

The stock kernels are made for one row or for hundreds. Between those, multiplying the weight by the transposed rows
splits the work along the weight, so each part of it is read once and by one core. A CPU that stores bfloat16 but cannot
compute in it is worse off: its stock kernel costs the same for every row, and checking a draft would cost as much as
decoding it. There, a block of the weight is unpacked to float32 while it sits in the cache.

Measured with two cores and AVX2, 16 rows against one: stock bfloat16 13 times the time, unpacked blocks 3 to 4 times.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

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

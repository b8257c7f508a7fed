"""Linear layers that keep sixteen bits a weight and compute in float32, for CPUs that cannot compute in bfloat16.

Decoding one token reads every weight once, so half the bytes are half the time. FBGEMM, which comes with PyTorch on
x86, multiplies float32 rows by float16 weights that it unpacks in registers, at one row as at hundreds. A bfloat16
weight becomes a float16 one without loss when the layer is scaled by a power of two: float16 has more digits, and
after scaling its 32 powers of two begin at the layer's largest weight. Weights below 2**-32 of that are kept to
2**-40 of it, which is thousands of times finer than what float32 sums can tell.

So the model's arithmetic is that of its bfloat16 weights in float32 throughout, and no near-tie falls differently
because a pass is wide.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from lookup_spec.model.linear import only_linear, replace_linears

_PACKED = 8192  # outputs packed as one; more of them take several times as long to pack
_LARGEST = 15  # float16 ends just below 2**16; a scaled layer's largest weight lies below 2**15


def can_pack() -> bool:
    """Whether PyTorch has the kernels here."""
    return torch.backends.quantized.engine in ("fbgemm", "x86") and hasattr(torch.ops.quantized, "linear_prepack_fp16")


class HalfLinear(nn.Module):
    """``x @ weight.T + bias`` of float32 rows, with the weight packed in float16.

    Args:
        weight: ``[out, in]``, its values those of bfloat16; copied.
        bias: ``[out]``, or None.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        wide = weight.detach().float()
        largest = float(wide.abs().max())
        power = _LARGEST - math.frexp(largest)[1] if largest and math.isfinite(largest) else 0
        self.out_features, self.in_features = wide.shape
        self._scale = math.ldexp(1.0, -power)
        wide = torch.ldexp(wide, torch.tensor(power))
        wide_bias = torch.zeros(self.out_features) if bias is None else bias.detach().float()
        self._packed: list[Any] = [
            torch.ops.quantized.linear_prepack_fp16(part.contiguous(), None if bias is None else part_of_bias)
            for part, part_of_bias in zip(wide.split(_PACKED), wide_bias.split(_PACKED), strict=True)
        ]

    def forward(self, rows: Tensor) -> Tensor:
        """``[..., in] -> [..., out]``, float32."""
        # Scaling by a power of two loses nothing, and there are fewer inputs than products.
        scaled = rows * self._scale
        parts: list[Tensor] = [torch.ops.quantized.linear_dynamic_fp16(scaled, packed) for packed in self._packed]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)

    def unpacked(self) -> Tensor:
        """The weight as it is multiplied, ``[out, in]`` float32."""
        parts = [torch.ops.quantized.linear_unpack_fp16(packed)[0].float() for packed in self._packed]
        return torch.cat(parts) * self._scale


def pack_linears(model: PreTrainedModel) -> bool:
    """Packs every linear layer of a bfloat16 model and lets it compute in float32, in place.

    Embeddings stay as they are, but their rows are widened; everything else is small and becomes float32.

    Args:
        model: its weights are bfloat16.

    Returns:
        False, and the model is as it was, if it holds matrices that are neither linear layers nor embeddings, such as
        experts in one tensor: widening those would double its size.
    """
    if not only_linear(model):
        return False
    replace_linears(model, HalfLinear)
    embeddings = [module for module in model.modules() if isinstance(module, nn.Embedding)]
    kept = {id(module.weight) for module in embeddings}
    for tensor in (*model.parameters(), *model.buffers()):
        if tensor.dtype == torch.bfloat16 and id(tensor) not in kept:
            tensor.data = tensor.data.float()
    for module in embeddings:
        module.register_forward_hook(_widen)
    return True


def _widen(module: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> Tensor:  # noqa: ARG001 - torch's signature
    return output.float()

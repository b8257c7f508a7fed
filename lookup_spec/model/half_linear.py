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
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from lookup_spec.model.linear import Making, make_all, only_linear, replacing

_PACKED = 8192  # outputs packed as one; more of them take several times as long to pack
_LARGEST = 15  # float16 ends just below 2**16; a scaled layer's largest weight lies below 2**15
_JOINT = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"))  # siblings that models give the same rows
_MOST_POWER = 126  # float32 has numbers for both two to this power and to minus this power


def can_pack() -> bool:
    """Whether PyTorch has the kernels here."""
    return torch.backends.quantized.engine in ("fbgemm", "x86") and hasattr(torch.ops.quantized, "linear_prepack_fp16")


class HalfLinear(nn.Module):
    """``x @ weight.T + bias`` of float32 rows, with the weight packed in float16.

    Args:
        weight: ``[out, in]``, its values those of bfloat16; copied.
        bias: ``[out]``, or None.

    Attributes:
        takes: the type of its rows, and of what comes out.
    """

    takes = torch.float32

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        weight = weight.detach()
        self.out_features, self.in_features = weight.shape
        largest = max(map(abs, map(float, torch.aminmax(weight))))
        power = min(_LARGEST - math.frexp(largest)[1], _MOST_POWER) if largest and math.isfinite(largest) else 0
        self._scale = math.ldexp(1.0, -power)
        # Widened and scaled in one go; `ldexp` would take longer than the packing.
        wide = weight * torch.tensor([math.ldexp(1.0, power)])
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


class _Whole(nn.Module):
    """Several layers as one product, kept until each has taken its part."""

    def __init__(self, layers: Sequence[nn.Linear]) -> None:
        super().__init__()
        biases = [layer.bias for layer in layers]
        zeros = [torch.zeros(layer.out_features, dtype=layer.weight.dtype) for layer in layers]
        bias = None if all(bias is None for bias in biases) else torch.cat(
            [zero if bias is None else bias for bias, zero in zip(biases, zeros, strict=True)]
        )  # fmt: skip
        self.product = HalfLinear(torch.cat([layer.weight for layer in layers]), bias)
        self._sizes = [layer.out_features for layer in layers]
        self._rows: Tensor | None = None
        self._parts: list[Tensor | None] = []

    def take(self, rows: Tensor, place: int) -> Tensor:
        """The part of the layer at a place among them; computed for all of them when the first one asks."""
        part = self._parts[place] if rows is self._rows else None
        if part is None:
            self._rows, self._parts = rows, [*self.product(rows).split(self._sizes, dim=-1)]
            part = self._parts[place]
        assert part is not None
        self._parts[place] = None
        if all(left is None for left in self._parts):
            self._rows = None  # it is of no more use
        return part


class JointLinear(nn.Module):
    """One of several layers that are given the same rows, multiplied together: each product by itself has to be shared
    out among the cores, which takes as long as a small one.

    If the others are given other rows after all, the result is the same and only the saving is lost.
    """

    def __init__(self, whole: _Whole, place: int) -> None:
        super().__init__()
        self._whole, self._place = whole, place

    def forward(self, rows: Tensor) -> Tensor:
        """``[..., in] -> [..., out]``, float32."""
        return self._whole.take(rows, self._place)


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
    make_all([*_joining(model), *replacing(model, HalfLinear)])
    embeddings = [module for module in model.modules() if isinstance(module, nn.Embedding)]
    kept = {id(module.weight) for module in embeddings}
    for tensor in (*model.parameters(), *model.buffers()):
        if tensor.dtype == torch.bfloat16 and id(tensor) not in kept:
            tensor.data = tensor.data.float()
    for module in embeddings:
        module.register_forward_hook(_widen)
    return True


def _joining(model: nn.Module) -> list[Making]:
    """Takes siblings that are given the same rows out of the model and tells how to put joint layers there."""

    def join(parent: nn.Module, names: Sequence[str], layers: Sequence[nn.Linear]) -> Making:
        def run() -> None:
            whole = _Whole(layers)
            for place, name in enumerate(names):
                setattr(parent, name, JointLinear(whole, place))

        return Making(sum(layer.weight.numel() for layer in layers), run)

    makings = []
    for parent in model.modules():
        for names in _JOINT:
            layers = [child for child in (getattr(parent, name, None) for name in names) if type(child) is nn.Linear]
            if len(layers) == len(names):
                makings.append(join(parent, names, layers))
                for name in names:
                    setattr(parent, name, None)
    return makings


def _widen(module: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> Tensor:  # noqa: ARG001 - torch's signature
    return output.float()

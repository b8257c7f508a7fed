"""Attention over packed rows of several sessions, as one function registered with transformers.

The rows of all sessions lie side by side in one sequence. Everything in a decoder layer treats rows alike but
attention; here each session's rows see that session's cache and, among themselves, only their own ancestors.
No padding is needed, and prefill chunks and draft trees of any width share a pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import AttentionInterface

from lookup_spec.errors import ModelError
from lookup_spec.model.cache import KVCache
from lookup_spec.model.steady import Lines, steady_attention

NAME = "lookup_spec"
_FEW = 32  # rows of one session

# Arguments that models pass along to every attention function and that change nothing in it.
_INFORMATION = frozenset(
    {
        "cache_position",
        "cache",
        "is_causal",
        "layer_type",
        "num_items_in_batch",
        "output_attentions",
        "output_hidden_states",
        "output_router_logits",
        "past_key_values",
        "position_ids",
        "return_dict",
        "use_cache",
    }
)


def ancestors(parents: Sequence[int]) -> NDArray[np.bool_]:
    """Which rows see which: ``[n, n]``, true where the column is the row itself or an ancestor of it."""
    n = len(parents)
    seen = np.tri(n, dtype=np.bool_)
    branched = next((i for i, parent in enumerate(parents) if parent != i - 1), n)
    for row in range(branched, n):
        seen[row] = False
        if parents[row] >= 0:
            seen[row] = seen[parents[row]]
        seen[row, row] = True
    return seen


@dataclass(slots=True)
class Slice:
    """One session's rows within the packed sequence.

    Attributes:
        cache: where their keys and values go.
        start: index of the first row in the packed sequence.
        parents: each row's parent among these rows; -1 for a row that directly follows the cache.
        depths: each row's distance behind the cache.
    """

    cache: KVCache
    start: int
    parents: Sequence[int]
    depths: Sequence[int]
    _masks: dict[tuple[int | None, int], Tensor | None] = field(default_factory=dict)
    _lines: Lines | None = None
    _line_masks: dict[int | None, Tensor] = field(default_factory=dict)

    @property
    def end(self) -> int:
        """Index behind the last row."""
        return self.start + len(self.parents)

    @property
    def lines(self) -> Lines:
        """The rows in the order of the texts that they are of."""
        if self._lines is None:
            self._lines = Lines(self.parents, self.cache.length)
        return self._lines

    def line_mask(self, window: int | None) -> Tensor:
        """As :meth:`Lines.mask`, shared by all layers."""
        if window not in self._line_masks:
            self._line_masks[window] = self.lines.mask(self.depths, window)
        return self._line_masks[window]

    def mask(self, window: int | None, times: int, dtype: torch.dtype, device: torch.device) -> Tensor | None:
        """Additive mask ``[times * rows, cached + rows]``, shared by all layers with this window; the rows in turn, so
        many times. None sees everything."""
        key = window, times
        if key not in self._masks:
            mask = self._mask(window, dtype, device)
            self._masks[key] = mask if mask is None or times == 1 else mask.repeat(times, 1)
        return self._masks[key]

    def _mask(self, window: int | None, dtype: torch.dtype, device: torch.device) -> Tensor | None:
        rows, cached = len(self.parents), self.cache.length
        if rows == 1 and (window is None or cached < window):
            return None
        seen = np.concatenate([np.ones((rows, cached), np.bool_), ancestors(self.parents)], axis=1)
        if window is not None:
            # Positions, not rows: siblings stand at the same distance from what they look back on.
            depths = np.asarray(self.depths)
            keys = np.concatenate([np.arange(cached), cached + depths])
            seen &= (cached + depths)[:, None] - keys[None, :] < window
        mask = torch.zeros(seen.shape, dtype=dtype)
        mask.masked_fill_(torch.from_numpy(~seen), float("-inf"))
        return mask.to(device)


@dataclass(frozen=True, slots=True)
class Scores:
    """How a layer makes scores of queries and keys.

    Attributes:
        scaling: factor of the scores; None for ``dim ** -0.5``.
        window: a row sees positions less than this far back; None sees all.
        softcap: bound of the scores, applied as ``softcap * tanh(score / softcap)``; None for no bound.
    """

    scaling: float | None = None
    window: int | None = None
    softcap: float | None = None


class Plan(Protocol):
    """What the rows of one forward pass see, handed through the model to every attention layer."""

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scores: Scores) -> Tensor:
        """Keeps the rows' keys and values, and looks at them and at earlier ones.

        Args:
            layer: index of the layer.
            query: ``[query heads, rows, dim]``.
            key: ``[key heads, rows, dim]``.
            value: ``[key heads, rows, value dim]``.
            scores: how this layer makes them.

        Returns:
            ``[rows, query heads, value dim]``.
        """


@dataclass(frozen=True, slots=True)
class Packed:
    """Rows of sessions whose caches lie anywhere; each session's are attended by themselves.

    Attributes:
        slices: the sessions, in the order of their rows.
        compute_dtype: in which attention is computed; None for the model's own.
        steady: rows must not depend on others of the pass, to the last bit; computed in float32.
    """

    slices: Sequence[Slice]
    compute_dtype: torch.dtype | None = None
    steady: bool = False

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scores: Scores) -> Tensor:
        """See :class:`Plan`."""
        if self.steady:
            return _steady(layer, query, key, value, self.slices, scores)
        out = query.new_empty((query.shape[1], query.shape[0], value.shape[2]))
        compute = self.compute_dtype or query.dtype
        for piece in self.slices:
            rows = slice(piece.start, piece.end)
            keys, values = piece.cache.write(layer, key[:, rows], value[:, rows])
            few = len(piece.parents) <= _FEW
            queries = query[:, rows]
            # Query heads that share keys lie together, so they can stand below each other like rows: then keys are read
            # once for all of them. Where there are many rows, these are enough.
            stacked = queries.shape[0] // keys.shape[0] if few else 1
            mask = piece.mask(scores.window, stacked, compute, query.device)
            # What is left of the groups become heads over keys of stride 0, so shared keys are never copied.
            queries = queries.reshape(keys.shape[0], -1, stacked * queries.shape[1], queries.shape[2]).to(compute)
            shared = [part.to(compute)[:, None].expand(-1, queries.shape[1], -1, -1) for part in (keys, values)]
            attended = attend(queries, shared[0], shared[1], mask, scores)
            out[rows] = attended.reshape(query.shape[0], -1, attended.shape[3]).transpose(0, 1)
        return out


def packed_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None = None,
    *,
    packed: Plan,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    softcap: float | None = None,
    **rest: Any,
) -> tuple[Tensor, None]:
    """Scaled-dot-product attention of every row over its own session's cache and its ancestors.

    Args:
        module: the layer's attention module; its ``layer_idx`` names the cache's layer.
        query: ``[1, query heads, total rows, dim]``.
        key: ``[1, key heads, total rows, dim]``.
        value: ``[1, key heads, total rows, dim]``.
        attention_mask: must be None; what a row sees comes from ``packed``.
        packed: the plan.
        scaling: of the scores; None for ``dim ** -0.5``.
        dropout: must be 0.
        sliding_window: a row sees positions less than this far back.
        softcap: bound of the scores, applied as ``softcap * tanh(score / softcap)``.
        rest: anything else the model passes; refused unless known to change nothing.

    Returns:
        ``[1, total rows, query heads, dim]`` and None in place of attention weights.

    Raises:
        ModelError: the model asks for something that is not computed here.
    """
    _refuse_unknown(module, attention_mask, dropout, rest)
    layer = module.layer_idx
    assert isinstance(layer, int)
    scores = Scores(scaling, sliding_window, softcap)
    return packed.attend(layer, query[0], key[0], value[0], scores)[None], None


def _steady(layer: int, query: Tensor, key: Tensor, value: Tensor, slices: Sequence[Slice], scores: Scores) -> Tensor:
    """``[total rows, query heads, dim]``; rows of no session are zero."""
    out = query.new_zeros((query.shape[1], query.shape[0], value.shape[2]))
    scaling = query.shape[2] ** -0.5 if scores.scaling is None else scores.scaling
    for piece in slices:
        rows = slice(piece.start, piece.end)
        keys, values = piece.cache.write(layer, key[:, rows], value[:, rows], whole=True)
        mask = piece.line_mask(scores.window)
        attended = steady_attention(query[:, rows].float(), keys, values, piece.lines, mask, scaling, scores.softcap)
        out[rows] = attended.transpose(0, 1).to(out.dtype)
    return out


def attend(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, scores: Scores) -> Tensor:
    """Plain scaled-dot-product attention; a window is the mask's business.

    Args:
        query: ``[batch, heads, rows, dim]``.
        keys: ``[batch, heads, length, dim]``.
        values: ``[batch, heads, length, value dim]``.
        mask: added to the scores, of a shape that broadcasts to theirs; None hides nothing.
        scores: how they are made.

    Returns:
        ``[batch, heads, rows, value dim]``.
    """
    if scores.softcap is None:
        return nn.functional.scaled_dot_product_attention(query, keys, values, attn_mask=mask, scale=scores.scaling)
    product = query @ keys.transpose(-1, -2) * (query.shape[3] ** -0.5 if scores.scaling is None else scores.scaling)
    product = torch.tanh(product / scores.softcap) * scores.softcap
    if mask is not None:
        product = product + mask
    return torch.softmax(product, dim=-1, dtype=torch.float32).to(values.dtype) @ values


def _refuse_unknown(module: nn.Module, mask: Tensor | None, dropout: float, rest: dict[str, Any]) -> None:
    name = type(module).__name__
    if mask is not None or dropout:
        raise ModelError(f"{name} passes its own attention mask or dropout, which packed rows cannot honour.")
    for argument, value in rest.items():
        if argument not in _INFORMATION and value is not None and value is not False:
            raise ModelError(
                f"{name} uses the attention feature {argument!r}, which is not supported; choose another model."
            )
    if rest.get("is_causal") is False:
        raise ModelError(f"{name} attends in both directions; only causal decoders can be run.")


AttentionInterface.register(NAME, packed_attention)

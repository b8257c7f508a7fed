"""One forward pass of an unmodified transformers model over the rows of many sessions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import PreTrainedModel

from lookup_spec.errors import ModelError
from lookup_spec.model.attention import NAME, Packed, Plan, Slice
from lookup_spec.model.cache import KVCache
from lookup_spec.model.half_linear import can_pack, pack_linears
from lookup_spec.model.linear import (
    PrepackedBfloat16,
    PrepackedLinear,
    native_bfloat16,
    only_linear,
    replace_linears,
    widen_linears,
)
from lookup_spec.model.padding import NONE, SIXTEENS, Padding, find_padding


@dataclass(frozen=True, slots=True)
class Rows:
    """What one session wants computed.

    Attributes:
        cache: its committed keys and values.
        tokens: token id of each row, ``[n]``, at least one.
        parents: each row's parent among these rows, ``[n]``; -1 directly follows the cache; ``parents[i] < i``.
        keep: rows ``keep .. n-1`` need logits.
    """

    cache: KVCache
    tokens: Sequence[int]
    parents: Sequence[int]
    keep: int


class PackedModel:
    """A causal decoder that takes rows of several sessions at once.

    Args:
        model: a transformers model for causal language modelling, in evaluation mode.
        strict: a row's logits depend on its own text alone, to the last bit: the same in a pass of its own, in a tree,
            in company of other sessions, however its text was cut into passes. Takes a little longer.

    Attributes:
        strict: as given.
        token_bytes: memory that one token's keys and values take.

    Raises:
        ModelError: its attention asks for something that packed rows do not honour, or ``strict`` for what this
            machine's kernels do not keep.
    """

    def __init__(self, model: PreTrainedModel, *, strict: bool = False) -> None:
        self.model = model
        self.strict = strict
        self.device: torch.device = model.device
        self.vocab_size: int = model.config.get_text_config().vocab_size
        self._compute_dtype = _fit_to_cpu(model, strict) if self.device.type == "cpu" else None
        self._padding = _padding(model, strict)
        model.set_attn_implementation(NAME)
        probe = self.new_cache()
        self.forward([Rows(probe, (0,), (-1,), 0)])
        self.token_bytes = probe.nbytes // probe.capacity

    def new_cache(self, capacity: int = 0) -> KVCache:
        """An empty cache for one session, with room for ``capacity`` tokens."""
        dtype = torch.float32 if self.strict else self._compute_dtype
        return KVCache(capacity, dtype, cleared=self.strict)

    @torch.no_grad()
    def forward(self, batch: Sequence[Rows]) -> list[Tensor]:
        """Runs the model once and writes every row's keys and values into its session's cache, uncommitted.

        Args:
            batch: the sessions' rows.

        Returns:
            For each session, float32 logits ``[n - keep, vocab]`` on the model's device: row ``i`` holds the
            distribution of the token after node ``keep + i``.
        """
        slices: list[Slice] = []
        tokens: list[int] = []
        positions: list[int] = []
        kept: list[int] = []
        for rows in batch:
            depths = depths_of(rows.parents)
            slices.append(Slice(rows.cache, len(tokens), rows.parents, depths))
            kept.extend(range(len(tokens) + rows.keep, len(tokens) + len(rows.tokens)))
            tokens.extend(rows.tokens)
            positions.extend(rows.cache.length + depth for depth in depths)
        wanted = len(kept)
        kept = kept or [len(tokens) - 1]
        # Rows of no session: whatever comes out of them, nobody looks at it.
        padding = self._padding.width(len(tokens)) - len(tokens)
        tokens.extend([0] * padding)
        positions.extend([0] * padding)
        kept.extend(kept[-1:] * (self._padding.width(len(kept)) - len(kept)))
        packed = Packed(slices, self._compute_dtype, self.strict)
        logits = self.run(self._row(tokens), self._row(positions), self._row(kept), packed)
        sizes = [len(rows.tokens) - rows.keep for rows in batch]
        return list(logits[:wanted].float().split(sizes))

    @torch.no_grad()
    def run(self, tokens: Tensor, positions: Tensor, kept: Tensor | int, plan: Plan) -> Tensor:
        """One pass, of which the plan says what rows see and where their keys and values go.

        Args:
            tokens: ``[n]`` int64.
            positions: ``[n]`` int64.
            kept: indices of the rows that need logits, ``[k]`` int64; 0 for all.
            plan: what the attention layers do.

        Returns:
            ``[k, vocab]`` in the model's own type.
        """
        output = self.model(
            input_ids=tokens[None], position_ids=positions[None], use_cache=False, logits_to_keep=kept, packed=plan
        )
        logits = output.logits
        assert isinstance(logits, Tensor)
        return logits[0]

    def _row(self, values: list[int]) -> Tensor:
        return torch.tensor(values, device=self.device)


def _fit_to_cpu(model: PreTrainedModel, strict: bool) -> torch.dtype | None:
    """Gives a model the linear layers that are fastest on this CPU; if strict, those that treat all rows alike.

    Returns:
        In which type attention is computed; None for that of the rows.
    """
    if strict and not only_linear(model):
        raise ModelError(
            f"{type(model).__name__} has experts, which are computed in groups as large as each pass happens to make "
            "them, so that strict mode could not keep what it promises; turn it off."
        )
    if model.dtype == torch.bfloat16 and not native_bfloat16():
        if can_pack() and pack_linears(model):
            return None
        widen_linears(model)
        return torch.float32  # faster here than emulated bfloat16, and more exact
    if model.dtype == torch.bfloat16 and only_linear(model):
        replace_linears(model, PrepackedBfloat16)
    if model.dtype == torch.float32 and strict:
        replace_linears(model, PrepackedLinear)
    elif model.dtype == torch.float32:
        widen_linears(model)
    return None


def _padding(model: PreTrainedModel, strict: bool) -> Padding:
    if not strict:
        return NONE
    # What other devices' kernels do is not tried layer by layer; whole passes are, at the start.
    return find_padding(model) if model.device.type == "cpu" else SIXTEENS


def depths_of(parents: Sequence[int]) -> list[int]:
    """Each row's distance behind the cache."""
    depths: list[int] = []
    for parent in parents:
        depths.append(depths[parent] + 1 if parent >= 0 else 0)
    return depths

"""How many tokens' keys and values there is memory for."""

from __future__ import annotations

from dataclasses import dataclass

from lookup_spec.errors import ModelError
from lookup_spec.model.cache import BLOCK
from lookup_spec.model.forward import PackedModel
from lookup_spec.model.placement import spare_memory

_MOST_KEPT = 2 << 30  # bytes of a machine's own memory, which others want, too


@dataclass(frozen=True, slots=True)
class Room:
    """Memory, in tokens.

    Attributes:
        tokens: for all sessions together, and whatever is kept.
        kept: for what is kept of ended sessions.
    """

    tokens: int
    kept: int


def measure_room(model: PackedModel, total_bytes: int | None, kept_bytes: int | None, most: int) -> Room:
    """The room on a model's device.

    Args:
        model: already loaded.
        total_bytes: what may be taken; None takes what can be spared.
        kept_bytes: how much of it may be kept; None takes a quarter, but of a machine's own memory at most 2 GiB.
        most: tokens to assume where it cannot be told what can be spared.

    Raises:
        ModelError: it is too little for any request.
    """
    size = model.token_bytes
    spare = spare_memory(model.device) if total_bytes is None else total_bytes
    tokens = most if spare is None else spare // size
    if tokens < BLOCK:
        raise ModelError(
            f"There are {spare} bytes for keys and values, but this model needs {size} for each token; "
            f"give at least {size * BLOCK}, better a hundred times as many."
        )
    if kept_bytes is not None:
        kept = kept_bytes // size
    elif model.device.type == "cuda":
        kept = tokens // 4
    else:
        kept = min(tokens // 4, _MOST_KEPT // size)
    return Room(tokens // BLOCK * BLOCK, kept)

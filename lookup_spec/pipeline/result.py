"""A whole answer, and how the pieces of a streamed one make it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lookup_spec.engine.session import FinishReason, Piece
from lookup_spec.errors import InvalidRequestError
from lookup_spec.model.sampling import TokenLogprobs
from lookup_spec.stats import Stats


@dataclass(frozen=True, slots=True)
class Result:
    """A whole answer.

    Attributes:
        text: the answer, without what ended it.
        token_ids: its tokens, without an end token or a stop string's.
        finish_reason: ``"stop"`` (end token or stop string), ``"length"`` (``max_tokens`` or the context is full) or
            ``"cancelled"``.
        stats: what it cost.
        logprobs: one entry for each token, if asked for.
    """

    text: str
    token_ids: tuple[int, ...]
    finish_reason: FinishReason
    stats: Stats
    logprobs: tuple[TokenLogprobs, ...] = ()


def collect(pieces: Iterator[Piece]) -> Result:
    """Joins the pieces of one answer.

    Raises:
        InvalidRequestError: the pieces end without a finish reason.
    """
    parts = list(pieces)
    if not parts or parts[-1].finish_reason is None:
        raise InvalidRequestError("The answer ended before it was complete.")
    return Result(
        text="".join(part.text for part in parts),
        token_ids=tuple(token for part in parts for token in part.token_ids),
        finish_reason=parts[-1].finish_reason,
        stats=parts[-1].stats,
        logprobs=tuple(entry for part in parts for entry in part.logprobs),
    )

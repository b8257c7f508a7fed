"""Filling in the middle of a text: from two texts and what stands beside them to what the engine is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lookup_spec.errors import InvalidRequestError
from lookup_spec.pipeline.engine import Engine
from lookup_spec.pipeline.prompts import Told
from lookup_spec.propose.prompt import Prompt, Reference, Span
from lookup_spec.text.fim import FimDocument, FimRoom, FimTokens, fim_prompt

_WINDOW = 2048  # tokens around the gap: farther ones cost time and help little


@dataclass(frozen=True, slots=True)
class Fill:
    """A text to fill in.

    Attributes:
        told: the prompt, with where the texts stand in it and what had no room but may be copied from.
        truncated: some of the texts were cut or left out.
    """

    told: Told
    truncated: bool


def can_fill(engine: Engine) -> bool:
    """Whether the engine's model has tokens for filling in."""
    return FimTokens.of(engine.template) is not None


def fill(
    engine: Engine,
    before: str,
    after: str,
    documents: Sequence[FimDocument] | None = None,
    room: FimRoom | None = None,
) -> Fill:
    """What to generate for the middle of a text; arguments as for :func:`lookup_spec.text.fim.fim_prompt`.

    Raises:
        InvalidRequestError: the model has no tokens for it.
    """
    tokens = FimTokens.of(engine.template)
    if tokens is None:
        raise InvalidRequestError(
            "The model has no tokens for filling in the middle, which suffix asks for; leave suffix out, or use a "
            "model trained for it.",
            param="suffix",
        )
    made = fim_prompt(engine.template, tokens, before, after, documents, room)
    spans = tuple(Span(start, end, "document") for start, end in made.spans)
    left_out = tuple(Reference(ids, "document") for ids in made.left_out if ids)
    return Fill(Told(Prompt(made.ids, spans, left_out), stop_token_ids=tokens.all), made.truncated)


def room_for(context_length: int, max_tokens: int | None) -> FimRoom:
    """How much of each text to take: most for what stands before the gap, and for other texts what is left.

    Args:
        context_length: of the model.
        max_tokens: of the answer; None if it has no limit.
    """
    window = min(_WINDOW, context_length // 2)
    answer = window if max_tokens is None else min(max_tokens, window)
    return FimRoom(window * 3 // 4, max(0, window // 4 - 2), max(0, context_length - window - 2 * answer))

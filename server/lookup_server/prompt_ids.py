"""Prompts as token ids, and a look at the size of a text before all of it is tokenized: megabytes take seconds."""

from __future__ import annotations

from lookup_server.errors import ApiError
from lookup_spec.errors import ContextLengthError
from lookup_spec.pipeline.engine import Engine

_LETTERS_PER_TOKEN = 8  # twice what code and prose have; a text that is denser takes the long way


def refuse_too_long(engine: Engine, text: str) -> None:
    """Refuses a text whose beginning alone fills the context.

    Raises:
        ApiError: it cannot fit.
    """
    size = engine.context_length * _LETTERS_PER_TOKEN
    if len(text) <= size:
        return
    # Of the tokenizer's calls, this one lets other threads run meanwhile.
    [head] = engine.tokenizer.backend_tokenizer.encode_batch_fast([text[:size]], add_special_tokens=False)
    tokens = len(head.ids)
    if tokens > engine.context_length:
        raise ApiError(
            400,
            f"The prompt's first {size} characters of {len(text)} have {tokens} tokens, but this model holds "
            f"{engine.context_length}, its answer included; shorten the prompt.",
            code="context_length_exceeded",
            details={"n_prompt_tokens": tokens * len(text) // size, "n_ctx": engine.context_length},
        )


def ids_of(engine: Engine, prompt: str | list[int]) -> tuple[int, ...]:
    """The ids of a prompt that is a text, or ids already.

    Raises:
        ApiError: it cannot fit.
        ContextLengthError: likewise.
    """
    if not isinstance(prompt, str):
        if len(prompt) >= engine.context_length:  # before anybody looks at them one by one
            raise ContextLengthError(len(prompt), engine.context_length)
        return tuple(prompt)
    refuse_too_long(engine, prompt)
    return engine.prompts.encode(prompt)

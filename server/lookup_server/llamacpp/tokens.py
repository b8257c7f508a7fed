"""Texts to tokens and back, as clients ask for it to count and to see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lookup_server.errors import bad_request
from lookup_server.llamacpp.requests import DetokenizeBody, TemplateBody, TokenizeBody
from lookup_server.openai.tokens import token_bytes
from lookup_spec.pipeline.engine import Engine


def tokenize(body: TokenizeBody, engine: Engine) -> dict[str, Any]:
    """The tokens of a text."""
    template = engine.template
    if body.parse_special is False:
        ids = (*(template.start if body.add_special else ()), *template.encode_data(body.content))
    elif body.add_special:
        ids = template.encode_raw(body.content)
    else:
        [encoding] = engine.tokenizer.backend_tokenizer.encode_batch_fast([body.content], add_special_tokens=False)
        ids = tuple(encoding.ids)
    if body.with_pieces:
        return {"tokens": [{"id": token, "piece": _piece(token_bytes(engine, token))} for token in ids]}
    return {"tokens": list(ids)}


def detokenize(body: DetokenizeBody, engine: Engine) -> dict[str, Any]:
    """The text of tokens, control tokens by their names.

    Raises:
        ApiError: there is no such token.
    """
    size = len(engine.tokenizer)
    for token in body.tokens:
        if token >= size:
            raise bad_request(f"tokens holds {token}, but this model's tokens are 0 to {size - 1}.", "tokens")
    return {"content": text_of(engine, body.tokens)}


def apply_template(body: TemplateBody, engine: Engine) -> dict[str, Any]:
    """A conversation as the model's chat template writes it.

    Raises:
        InvalidRequestError: the template cannot render it.
    """
    encoded = engine.template.encode([message.plain() for message in body.messages])
    return {"prompt": text_of(engine, encoded.ids)}


def text_of(engine: Engine, ids: Sequence[int]) -> str:
    """A text with the names of control tokens in it; a token that the vocabulary lacks is left out."""
    size = len(engine.tokenizer)
    return b"".join(token_bytes(engine, token) for token in ids if token < size).decode(errors="replace")


def _piece(data: bytes) -> str | list[int]:
    """A token's text, or its bytes if they are none."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return list(data)

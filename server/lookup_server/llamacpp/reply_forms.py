"""The forms of llama.cpp's replies."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, JsonValue

from lookup_server.reply_forms import Form


class Generated(BaseModel):
    """An answer in llama.cpp's form, or those of its fields that ``response_fields`` named."""

    content: str = ""
    index: int = 0
    tokens: list[int] = []
    stop: bool = True
    model: str = ""
    tokens_predicted: int = 0
    tokens_evaluated: int = 0
    tokens_cached: int = 0
    generation_settings: dict[str, JsonValue] = {}
    prompt: str = ""
    has_new_line: bool = False
    truncated: bool = False
    stop_type: Literal["eos", "limit", "word"] = "eos"
    stopping_word: str = ""
    timings: dict[str, float] = {}


class DefaultSettings(Form):
    """Where a request says nothing."""

    n_ctx: int
    params: dict[str, JsonValue]


class Props(Form):
    """What the server runs."""

    default_generation_settings: DefaultSettings
    total_slots: int
    model_path: str
    model_alias: str
    chat_template: str
    build_info: str


class Slot(Form):
    """A place for an answer."""

    id: int
    is_processing: bool
    n_ctx: int
    speculative: bool
    params: dict[str, JsonValue]


class TokenPiece(Form):
    """A token with its text, or its bytes if they are none."""

    id: int
    piece: str | list[int]


class Tokens(Form):
    """A text's tokens."""

    tokens: list[int] | list[TokenPiece]


class Content(Form):
    """The text of tokens."""

    content: str


class Rendered(Form):
    """A conversation as the model reads it."""

    prompt: str

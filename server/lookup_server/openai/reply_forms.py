"""The forms of OpenAI's replies."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from lookup_server.reply_forms import Form, Usage


class Likely(Form):
    """A token that might have been."""

    token: str
    logprob: float
    bytes: list[int]


class Chosen(Likely):
    """A token that was chosen."""

    top_logprobs: list[Likely]


class ChatLogprobs(Form):
    """An entry for each token."""

    content: list[Chosen]
    refusal: None


class TextLogprobs(Form):
    """Lists as long as there are tokens."""

    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]] | None
    text_offset: list[int]


class CalledFunction(Form):
    """A function with its arguments as JSON."""

    name: str
    arguments: str


class Call(Form):
    """A call of a tool."""

    id: str
    type: Literal["function"]
    function: CalledFunction


class AnswerMessage(Form):
    """What the assistant says."""

    role: Literal["assistant"]
    content: str | None
    refusal: None
    tool_calls: list[Call] = Field([])


class ChatChoice(Form):
    """One answer."""

    index: int
    message: AnswerMessage
    logprobs: ChatLogprobs | None
    finish_reason: Literal["stop", "length", "tool_calls"]


class Answers(Form):
    """What replies with answers begin and end with."""

    id: str
    created: int
    model: str
    system_fingerprint: str
    usage: Usage


class Chat(Answers):
    """A reply to a chat."""

    object: Literal["chat.completion"]
    choices: list[ChatChoice]


class TextChoice(Form):
    """One answer."""

    index: int
    text: str
    logprobs: TextLogprobs | None
    finish_reason: Literal["stop", "length"]


class Text(Answers):
    """A reply to a text completion."""

    object: Literal["text_completion"]
    choices: list[TextChoice]


class ModelMeta(Form):
    """How long a text may be."""

    n_ctx: int
    n_ctx_train: int


class ModelCard(Form):
    """A name of the model."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    max_model_len: int
    meta: ModelMeta


class ModelCards(Form):
    """All names."""

    object: Literal["list"]
    data: list[ModelCard]

"""Request bodies of the two completion APIs, field by field.

A field that is missing or null has its default. A field that would change the answer and is not implemented
is refused by name, never ignored; OpenAI's fields that cannot change it are accepted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, field_validator, model_validator

from lookup_server.body import Body
from lookup_server.errors import refuse
from lookup_server.openai.tools import MAX_TOOLS, NamedTool, ResponseFormat, ToolCall, ToolField
from lookup_server.shared_fields import MAX_CHOICES, AnswerFields, Count, Number, PromptField, TokenId
from lookup_spec.params import Priority

_AS_THEY_ARE = (
    *("max_tokens", "temperature", "top_p", "presence_penalty", "frequency_penalty", "min_p", "repetition_penalty"),
    *("min_tokens", "stop_token_ids", "ignore_eos", "bad_words"),
)

_MOST_BIASES = 10_000

Bias = Annotated[float, Field(ge=-100, le=100)]


class StreamOptions(Body):
    """What a stream carries besides the answer.

    Attributes:
        include_usage: a last chunk with the token counts.
        include_speculation: each choice's ``speculation`` tells which text was proposed and by what, and at
            the end what speculation brought; an extension.
        include_obfuscation: accepted, without effect.
    """

    include_usage: bool | None = None
    include_speculation: bool | None = None
    include_obfuscation: bool | None = None


class SamplingFields(AnswerFields):
    """What both APIs share. The second group are extensions with vLLM's names."""

    n: Annotated[int, Field(ge=1, le=MAX_CHOICES)] | None = None
    stream_options: StreamOptions | None = None
    max_tokens: Count | None = None
    stop: Annotated[str | list[str] | None, Field(description="a string or a list of strings")] = None
    seed: Annotated[int, Field(ge=-(2**63), lt=2**64)] | None = None
    logit_bias: dict[str, Bias] | None = None

    repetition_penalty: Number | None = None
    min_tokens: Count | None = None
    stop_token_ids: list[TokenId] | None = None
    bad_words: list[str] | None = None

    service_tier: str | None = None

    # These cannot change an answer.
    user: str | None = None
    metadata: JsonValue | None = None
    store: bool | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None

    @field_validator("logit_bias", mode="before")
    @classmethod
    def _not_too_many(cls, bias: Any) -> Any:
        if isinstance(bias, dict) and len(bias) > _MOST_BIASES:
            raise ValueError(f"it has {len(bias)} entries; give {_MOST_BIASES} or fewer")
        return bias

    @field_validator("logit_bias")
    @classmethod
    def _token_ids(cls, bias: dict[str, float]) -> dict[str, float]:
        for key in bias:
            if not (key.isascii() and key.isdecimal()) or len(key) > 9:
                raise ValueError(f"the key {key[:40]!r} is not a token id")
        return bias

    @model_validator(mode="after")
    def _stream_options_need_a_stream(self) -> SamplingFields:
        if self.stream_options is not None and not self.stream:
            refuse("stream_options", "it only goes with stream: true")
        return self

    @property
    def choices(self) -> int:
        """How many answers each prompt gets."""
        return self.n or 1

    @property
    def priority(self) -> Priority:
        """OpenAI's flex tier is for work that nobody waits for; all others are interactive."""
        return "batch" if self.service_tier == "flex" else "interactive"

    def sampling(self, defaults: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments for :meth:`lookup_spec.Engine.sampling`, as far as both APIs share them.

        Args:
            defaults: used where the request does not say; by the same names.
        """
        given = {**defaults, **{name: value for name in _AS_THEY_ARE if (value := getattr(self, name)) is not None}}
        stop = [self.stop] if isinstance(self.stop, str) else self.stop or []
        given["stop"] = [text for text in stop if text]  # some clients send an empty one; it stops nothing
        given["logit_bias"] = {int(token): bias for token, bias in (self.logit_bias or {}).items()}
        if self.top_k is not None:
            given["top_k"] = max(self.top_k, 0)  # -1 is vLLM's way to say all
        return given


class CompletionRequest(SamplingFields, PromptField):
    """A body for ``/v1/completions``."""

    best_of: int | None = None
    echo: bool | None = None
    logprobs: Annotated[int, Field(ge=0, le=5)] | None = None
    suffix: str | None = None

    @model_validator(mode="after")
    def _implemented(self) -> CompletionRequest:
        if self.suffix and not all(isinstance(prompt, str) for prompt in self.prompts):
            refuse("suffix", "it only goes with prompts that are strings")
        if self.best_of not in (None, self.choices):
            refuse("best_of", f"only the value of n, {self.choices}, is supported")
        if self.echo and self.logprobs is not None:
            refuse("logprobs", "log-probabilities of the prompt, which echo asks for, are not supported")
        return self


class TextPart(Body):
    """A part of a message's content."""

    type: Literal["text"]
    text: str


Content = str | list[TextPart]


class Message(Body):
    """A message of a chat."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Content | None = None
    name: str | None = None
    annotations: list[JsonValue] | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None

    def check(self, place: str) -> None:
        """Refuses what goes against the role; ``place`` is where the message stands in the body."""
        if self.tool_calls and self.role != "assistant":
            refuse(f"{place}.tool_calls", "only the assistant calls tools")
        if self.content is None and not self.tool_calls:
            refuse(f"{place}.content", "it is missing")
        if self.tool_call_id is not None and self.role != "tool":
            refuse(f"{place}.tool_call_id", "it only goes with the role tool")
        for number, call in enumerate(self.tool_calls or ()):
            if call.arguments is None:
                refuse(f"{place}.tool_calls[{number}].function.arguments", "it is no JSON object")

    def plain(self) -> dict[str, Any]:
        """The message as templates take it."""
        message: dict[str, Any] = {"role": self.role, "content": text_of(self.content or "")}
        if self.tool_calls:
            message["tool_calls"] = [call.plain() for call in self.tool_calls]
        if self.role == "tool":
            named = {"name": self.name, "tool_call_id": self.tool_call_id}
            message |= {key: value for key, value in named.items() if value is not None}
        return message


class Prediction(Body):
    """A guess of the answer: it changes how fast the answer comes, never the answer."""

    type: Literal["content"]
    content: Content


class ChatRequest(SamplingFields):
    """A body for ``/v1/chat/completions``."""

    messages: Annotated[list[Message], Field(min_length=1)]
    max_completion_tokens: Count | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    prediction: Prediction | None = None
    response_format: ResponseFormat | None = None
    modalities: list[Literal["text"]] | None = None
    tools: Annotated[list[ToolField], Field(max_length=MAX_TOOLS)] | None = None
    tool_choice: Annotated[
        Literal["none", "auto", "required"] | NamedTool | None,
        Field(description='"none", "auto", "required", or a function by its name'),
    ] = None
    parallel_tool_calls: bool | None = None

    # llama.vim sends these along. The first asks for nothing to be generated, the others cannot change an answer.
    n_predict: Literal[0] | None = None
    samplers: list[str] | None = None
    id_slot: int | None = None
    cache_prompt: bool | None = None
    response_fields: list[str] | None = None

    @model_validator(mode="after")
    def _implemented(self) -> ChatRequest:
        for number, message in enumerate(self.messages):
            message.check(f"messages[{number}]")
        self._check_form()
        if self.top_logprobs is not None and not self.logprobs:
            refuse("top_logprobs", "it only goes with logprobs: true")
        if self.prediction is not None and self.choices > 1:
            refuse("n", "a prediction goes with one choice only")
        return self

    def _check_form(self) -> None:
        form, names = self.response_format, [tool.function.name for tool in self.tools or ()]
        if form is not None and (form.type == "json_schema") != (form.json_schema is not None):
            refuse("response_format.json_schema", 'it goes with the type "json_schema", and only with that')
        for number, name in enumerate(names):
            if name in names[:number]:
                refuse(f"tools[{number}].function.name", f"there are two functions of the name {name!r}")
        if isinstance(self.tool_choice, NamedTool) and self.tool_choice.function.name not in names:
            refuse("tool_choice", f"tools has no function of the name {self.tool_choice.function.name!r}")
        if self.tool_choice == "required" and not names:
            refuse("tool_choice", "there are no tools to choose from")
        if self.calls_tools and form is not None and form.grammar is not None:
            refuse("response_format", 'beside tools that may be called only the type "text" is supported')
        if self.messages[-1].role == "assistant":
            if self.calls_tools:
                refuse("messages", "an answer that may call tools cannot go on from a last message of the assistant")
            if form is not None and form.grammar is not None:
                refuse("messages", "an answer of a given form cannot go on from a last message of the assistant")

    @property
    def calls_tools(self) -> bool:
        """Whether the answer may call tools."""
        return bool(self.tools) and self.tool_choice != "none"

    @property
    def limit(self) -> int | None:
        """Most tokens to generate; the newer name wins."""
        if self.n_predict is not None:
            return self.n_predict
        return self.max_tokens if self.max_completion_tokens is None else self.max_completion_tokens


def text_of(content: Content) -> str:
    """A content as one text."""
    return content if isinstance(content, str) else "\n".join(part.text for part in content)

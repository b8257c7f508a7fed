"""Request bodies of llama.cpp's own routes, field by field.

A field that is missing or null has its default: llama.cpp's, but for the temperature. A field that would change the
answer and is not implemented is refused by name, never ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, model_validator

from lookup_server.body import Body
from lookup_server.errors import refuse
from lookup_server.openai.requests import Message
from lookup_server.shared_fields import MAX_CHOICES, AnswerFields, Count, Number, PromptField, TokenIds
from lookup_spec.grammar import Grammar

TOP_K, TOP_P, MIN_P = 40, 0.95, 0.05  # llama.cpp's defaults

Sampler = Literal["top_k", "top_p", "min_p", "temperature", "penalties", "infill", "dry", "typ_p", "top_n_sigma", "xtc"]
Limit = Annotated[int, Field(ge=-2, lt=2**31)]
Milliseconds = Annotated[int, Field(ge=-1, lt=2**31)]


class GenerationBody(AnswerFields):
    """What ``/completion`` and ``/infill`` share.

    Attributes:
        n_predict: most tokens; negative for no limit. With 0, the prompt is computed, for requests that begin alike,
            and nothing is generated: clients warm up that way.
        samplers: of top_k, top_p and min_p only those named here count; the others named have no effect, for they are
            off by default. ``"infill"`` has none either: it chooses among ends of answers.
        seed: -1 draws one.
        n_indent: an answer ends before a new line with fewer letters of indentation.
        t_max_predict_ms: after this time, an answer ends with its line.
        t_max_prompt_ms: if the prompt is not computed after this time, the answer ends there, empty; what was computed
            is kept for the next request. A warm-up, which nobody waits for, goes on.
        response_fields: of a whole reply, or a stream's last chunk, only these; ``timings/prompt_n`` is a field
            inside another.
    """

    n_predict: Limit | None = None
    n_cmpl: Annotated[int, Field(ge=1, le=MAX_CHOICES)] | None = None
    repeat_penalty: Number | None = None
    samplers: list[Sampler] | None = None
    seed: Annotated[int, Field(ge=-1, lt=2**64)] | None = None
    stop: list[str] | None = None
    n_indent: Count | None = None
    t_max_predict_ms: Milliseconds | None = None
    t_max_prompt_ms: Milliseconds | None = None
    response_fields: list[str] | None = None
    return_tokens: bool | None = None

    # These cannot change an answer.
    cache_prompt: bool | None = None
    id_slot: int | None = None
    n_cache_reuse: int | None = None
    n_keep: int | None = None
    timings_per_token: bool | None = None

    lora: list[JsonValue] | None = None

    @model_validator(mode="after")
    def _implemented(self) -> GenerationBody:
        if self.lora:
            refuse("lora", "adapters are not supported here")
        return self

    @property
    def choices(self) -> int:
        """How many answers each prompt gets."""
        return self.n_cmpl or 1

    @property
    def max_tokens(self) -> int | None:
        """Most tokens of an answer; None if there is no limit."""
        return None if self.n_predict is None or self.n_predict < 0 else self.n_predict

    @property
    def drawn_seed(self) -> int | None:
        """The seed; None if one is to be drawn."""
        return None if self.seed == -1 else self.seed

    def sampling(self, defaults: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments for :meth:`lookup_spec.Engine.sampling`.

        Args:
            defaults: used where the request does not say, before llama.cpp's own; by the names that are returned.
        """
        chosen = self.samplers

        def in_effect(name: str, default: Any, neutral: Any) -> Any:
            given = getattr(self, name)
            if chosen is not None and name not in chosen:
                return neutral
            return defaults.get(name, default) if given is None else given

        given = {
            "repetition_penalty": self.repeat_penalty,
            "presence_penalty": self.presence_penalty,
            "frequency_penalty": self.frequency_penalty,
            "ignore_eos": self.ignore_eos,
            # A negative one is greedy in llama.cpp.
            "temperature": None if self.temperature is None else max(0.0, self.temperature),
            "max_tokens": self.max_tokens,
        }
        if self.n_predict is not None and self.n_predict < 0:
            defaults = {name: value for name, value in defaults.items() if name != "max_tokens"}
        return {
            **defaults,
            **{name: value for name, value in given.items() if value is not None},
            "top_k": max(0, in_effect("top_k", TOP_K, 0)),
            "top_p": in_effect("top_p", TOP_P, 1.0),
            "min_p": in_effect("min_p", MIN_P, 0.0),
            "stop": [text for text in self.stop or () if text],
        }


class CompletionBody(GenerationBody, PromptField):
    """A body for ``/completion``."""

    json_schema: dict[str, JsonValue] | None = None
    grammar: str | None = None

    @model_validator(mode="after")
    def _has_one_form(self) -> CompletionBody:
        if self.json_schema is not None and self.grammar:
            refuse("grammar", "it does not go with json_schema; give one of the two")
        return self

    @property
    def form(self) -> Grammar | None:
        """The form that answers must have; None for any."""
        if self.json_schema is not None:
            return Grammar.json_schema(self.json_schema)
        return Grammar.gbnf(self.grammar) if self.grammar else None

    @property
    def batched(self) -> bool:
        """Whether the reply is a list."""
        return self.choices > 1 or (isinstance(self.prompt, list) and not isinstance(self.prompt[0], int))


class Extra(Body):
    """A text from elsewhere. Clients put the time that they saw it at in whatever form they have it."""

    text: str
    filename: str | None = None
    time: JsonValue | None = None


class InfillBody(GenerationBody):
    """A body for ``/infill``.

    Attributes:
        input_prefix: the text before the line of the cursor.
        prompt: that line, up to the cursor: it goes on where the prefix ends.
        input_suffix: the text behind the cursor.
        input_extra: texts from elsewhere, the most important last.
    """

    input_prefix: str
    input_suffix: str
    input_extra: list[Extra] | None = None
    prompt: str | None = None

    @property
    def batched(self) -> bool:
        """Whether the reply is a list."""
        return self.choices > 1


class TokenizeBody(Body):
    """A body for ``/tokenize``.

    Attributes:
        add_special: begin with the model's start token, if it has one.
        parse_special: control tokens count as such; else they are the letters they are made of.
        with_pieces: tell each token's text, too.
    """

    content: str
    add_special: bool | None = None
    parse_special: bool | None = None
    with_pieces: bool | None = None


class DetokenizeBody(Body):
    """A body for ``/detokenize``."""

    tokens: TokenIds


class TemplateBody(Body):
    """A body for ``/apply-template``."""

    messages: Annotated[list[Message], Field(min_length=1)]

"""Fields of request bodies that mean the same in OpenAI's API and in llama.cpp's."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import Field, PlainValidator, WithJsonSchema, model_validator

from lookup_server.body import Body
from lookup_server.errors import refuse


def _token_ids(value: Any) -> list[int]:
    # Pydantic would hold the interpreter's lock over all of them, of which there may be millions.
    if not isinstance(value, list) or any(type(token) is not int or token < 0 for token in value):
        raise ValueError("it is no list of token ids")
    return value


MAX_CHOICES = 128
MAX_PROMPTS = 1024

Number = Annotated[float, Field(allow_inf_nan=False)]
TokenId = Annotated[int, Field(ge=0)]
TokenIds = Annotated[
    list[int],
    PlainValidator(_token_ids),
    WithJsonSchema({"items": {"minimum": 0, "type": "integer"}, "type": "array"}),
]
"""Any number of them."""
Count = Annotated[int, Field(ge=0, lt=2**31)]
P = TypeVar("P")
Prompts = Annotated[list[P], Field(max_length=MAX_PROMPTS)]


class AnswerFields(Body):
    """How an answer is chosen and sent.

    Attributes:
        speculation: false for plain decoding; an extension.
    """

    model: str | None = None
    stream: bool | None = None
    temperature: Number | None = None
    top_k: Annotated[int, Field(ge=-1, lt=2**31)] | None = None
    top_p: Number | None = None
    min_p: Number | None = None
    presence_penalty: Number | None = None
    frequency_penalty: Number | None = None
    ignore_eos: bool | None = None
    speculation: bool | None = None


class PromptField(Body):
    """Texts to go on with, as text or as token ids."""

    prompt: Annotated[
        str | Prompts[str] | TokenIds | Prompts[TokenIds],
        Field(
            description="a string, a list of strings, a list of token ids, or a list of such lists; "
            f"{MAX_PROMPTS} prompts or fewer"
        ),
    ]

    @model_validator(mode="after")
    def _has_a_prompt(self) -> PromptField:
        if not self.prompt:
            refuse("prompt", "it is empty")
        return self

    @property
    def prompts(self) -> list[str | list[int]]:
        """The prompts, one by one."""
        if isinstance(self.prompt, str):
            return [self.prompt]
        if isinstance(self.prompt[0], int):
            return [self.prompt]  # all items are ints if the first is
        return self.prompt  # type: ignore[return-value]  # all items are strings, or all are lists

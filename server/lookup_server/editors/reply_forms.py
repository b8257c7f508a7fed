"""The forms of replies to Mistral's and Tabby's clients."""

from __future__ import annotations

from typing import Literal

from lookup_server.openai.reply_forms import Answers
from lookup_server.reply_forms import CompletionDetails, Form, PromptDetails


class FilledMessage(Form):
    """The text."""

    role: Literal["assistant"]
    content: str


class FilledChoice(Form):
    """One answer, in both places where clients of Mistral's look for it."""

    index: int
    message: FilledMessage
    text: str
    finish_reason: Literal["stop", "length"]


class Filled(Answers):
    """A text that was filled in, in the form of Mistral's service."""

    object: Literal["chat.completion"]
    choices: list[FilledChoice]


class TabbyChoice(Form):
    """One answer."""

    index: int
    text: str


class TabbyUsage(Form):
    """Token counts."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int = 0
    prompt_tokens_details: PromptDetails | None = None
    completion_tokens_details: CompletionDetails | None = None


class TabbyText(Form):
    """A reply to Tabby's clients."""

    id: str
    choices: list[TabbyChoice]
    mode: Literal["standard", "next_edit_suggestion"]
    usage: TabbyUsage

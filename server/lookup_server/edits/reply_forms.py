"""The forms of replies to edits."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from lookup_server.reply_forms import Form, PromptDetails, Usage


class LinesOf(Form):
    """Lines of the document, counted from 0; the end is not part of it."""

    start_line: int
    end_line: int


class EditedDocument(Form):
    """A document as the service read it."""

    uri: str
    version: int | str | None
    sha256: str
    lines: int
    eol: str
    bom: bool
    final_newline: bool


class EditHunkForm(Form):
    """Lines and what stands in their place."""

    hunk_id: int
    old: LinesOf
    text: str


class EditWhole(Form):
    """A whole edit."""

    object: Literal["edit"]
    edit_id: str
    created: int
    model: str
    mode: Literal["edit", "apply", "next_edit"]
    document: EditedDocument
    range: LinesOf
    shown: LinesOf
    narrowed: bool
    context_files: int
    hunks: list[EditHunkForm]
    text: str
    finish_reason: Literal["stop", "length", "cancelled", "stale", "no_change"]
    truncated: bool
    result_sha256: str
    usage: Usage
    trace: list[dict[str, JsonValue]] = Field([])
    stats: dict[str, JsonValue] = Field({})


class WarmUsage(Form):
    """Token counts of a prompt."""

    prompt_tokens: int
    prompt_tokens_details: PromptDetails


class Warmed(Form):
    """A document that was computed ahead, or left for something newer."""

    object: Literal["edit.warm"]
    model: str
    document: EditedDocument
    warm: bool
    usage: WarmUsage


class Cancelled(Form):
    """An edit that was told to end."""

    edit_id: str
    cancelled: Literal[True]

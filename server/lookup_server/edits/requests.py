"""Request bodies of edits, field by field."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Any, Literal
from urllib.parse import unquote, urlsplit

from pydantic import Field, model_validator

from lookup_server.body import Body
from lookup_server.errors import refuse
from lookup_spec.text.lines import Eol
from lookup_spec.text.positions import Encoding

_NAME_PARTS = 3  # of a path, at its end, that the model is shown

Mode = Literal["edit", "apply", "next_edit"]
Unsigned = Annotated[int, Field(ge=0, lt=2**31)]
Number = Annotated[float, Field(allow_inf_nan=False)]


class Position(Body):
    """A place in the document, as in the Language Server Protocol; ``position_encoding`` says what is counted."""

    line: Unsigned
    character: Unsigned


class Range(Body):
    """From one place to another; the end is not part of it."""

    start: Position
    end: Position

    @model_validator(mode="after")
    def _forward(self) -> Range:
        if (self.start.line, self.start.character) > (self.end.line, self.end.character):
            raise ValueError("the start lies behind the end")
        return self


class NamedText(Body):
    """What documents and other files have in common.

    Attributes:
        uri: names the file. The model is shown the end of its path; its suffix tells the language if nothing else does.
        language_id: the language, as the Language Server Protocol names it.
    """

    uri: str = ""
    language_id: str = ""

    @property
    def name(self) -> str:
        """What the model is shown."""
        try:
            path = unquote(urlsplit(self.uri).path)
        except ValueError:
            path = self.uri
        return "/".join(part for part in PurePosixPath(path).parts[-_NAME_PARTS:] if part != "/")


class Document(NamedText):
    """The document to edit: its text, or the hash of a text sent before. Line ends, a byte-order mark and the final
    newline are those of the text.

    Attributes:
        version: the editor's; comes back with every edit.
        text: all of it.
        base_sha256: of the text in UTF-8. Without a text, that of an earlier request or result is meant.
        eol: the kind of line ends; needed only where the text has none. Like the next two it is checked if given, to
            find editors that sent another text than they meant to.
        bom: the text begins with a byte-order mark.
        final_newline: the last line is ended.
    """

    version: int | str | None = None
    text: str | None = None
    base_sha256: Annotated[str, Field(pattern="^[0-9a-fA-F]{64}$")] | None = None
    eol: Eol | None = None
    bom: bool | None = None
    final_newline: bool | None = None

    @model_validator(mode="after")
    def _given(self) -> Document:
        if self.text is None and self.base_sha256 is None:
            refuse("document.text", "it is missing; give the text, or the base_sha256 of one sent before")
        return self


class ContextFile(NamedText):
    """Another file to go by."""

    text: str


class Options(Body):
    """How to decode and what to tell.

    Attributes:
        max_tokens: most tokens of the answer; without, twice what the text needs and 1,024 more.
        temperature: 0, the default, takes the likeliest token each time.
        granularity: ``"line"`` shows hunks as they grow, before they are closed.
        speculation: false decodes one token at a time, for comparison; the answer is the same.
        trace: tell each forward pass, with its tokens and what proposed them.
    """

    max_tokens: Unsigned | None = None
    temperature: Number = 0.0
    top_p: Number = 1.0
    seed: Annotated[int, Field(ge=0, lt=2**64)] | None = None
    granularity: Literal["hunk", "line"] = "hunk"
    speculation: bool = True
    trace: bool = False


class WarmRequest(Body):
    """A body for ``/v1/edits/warm``: the part of an edit that is known before the user has said what to change."""

    model: str | None = None
    document: Document
    context: list[ContextFile] = Field(default_factory=list)


class EditBody(WarmRequest):
    """A body for ``/v1/edits``.

    Attributes:
        mode: by default what the other fields tell: ``"apply"`` with an update, ``"next_edit"`` with a history.
        instruction: what to change, in plain words; goes with an update, too.
        update: changed code, in which comments like ``... existing code ...`` stand for what stays.
        edit_history: the latest changes as unified diffs, oldest first.
        range: only its lines are edited.
        cursor: where the user is: the place of the next edit, and of an edit where the whole document is too long.
        position_encoding: what ``character`` counts: UTF-16 code units, bytes or code points.
        context: other files to go by, as far as there is room.
        stream: send events; so does the header ``accept: text/event-stream``.
    """

    mode: Mode | None = None
    instruction: str | None = None
    update: str | None = None
    edit_history: list[str] | None = None
    range: Range | None = None
    cursor: Position | None = None
    position_encoding: Encoding = "utf-16"
    options: Options = Field(default_factory=Options)
    stream: bool | None = None

    @model_validator(mode="after")
    def _one_task(self) -> EditBody:
        given: dict[str, Any] = {"update": self.update, "edit_history": self.edit_history}
        needs = {"apply": "update", "next_edit": "edit_history"}
        for mode, field in needs.items():
            if given[field] is None and self.mode == mode:
                refuse(field, f"it is missing, but mode is {mode!r}")
            if given[field] is not None and self.kind != mode:
                refuse(field, f"it does not go with mode {self.kind!r}")
        if self.kind == "edit" and not (self.instruction or "").strip():
            refuse("instruction", "it is missing or empty; say what to change, or give an update or an edit_history")
        if self.kind == "apply" and not (self.update or "").strip():
            refuse("update", "it is empty; give the changed code")
        if self.kind == "next_edit" and self.instruction is not None:
            refuse("instruction", "it does not go with mode 'next_edit'")
        if self.kind == "next_edit" and self.cursor is None:
            refuse("cursor", "it is missing; the next edit is sought around it")
        return self

    @property
    def kind(self) -> Mode:
        """What is to be done."""
        if self.mode is not None:
            return self.mode
        return "apply" if self.update is not None else "next_edit" if self.edit_history is not None else "edit"

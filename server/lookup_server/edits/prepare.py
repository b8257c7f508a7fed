"""From the body of an edit to what the engine is asked."""

from __future__ import annotations

from lookup_server.edits.documents import Documents, sha256_of, stale
from lookup_server.edits.reply import EditHead, EditReply
from lookup_server.edits.requests import ContextFile, Document, EditBody, Position, Range
from lookup_server.errors import bad_request
from lookup_server.runner import Task
from lookup_spec.errors import EditError
from lookup_spec.pipeline.edit_plan import EditRequest, plan_edit
from lookup_spec.pipeline.engine import Engine
from lookup_spec.text.edit_task import File, Instruction, Lines, NextEdit, Update
from lookup_spec.text.edit_task import Task as EditTask
from lookup_spec.text.lines import NEWLINES, SourceText
from lookup_spec.text.positions import Encoding, column_of


def edit_tasks(body: EditBody, engine: Engine, head: EditHead, documents: Documents) -> tuple[list[Task], EditReply]:
    """What to generate, and the reply that it is for. Takes long for long documents.

    Raises:
        ApiError: the document is not known, or a field does not fit it.
        InvalidRequestError: the edit can never be served.
    """
    request = _request(body, engine, source_of(body.document, head.tenant, documents))
    try:
        plan = plan_edit(engine, request)
    except EditError as error:
        raise bad_request(str(error)) from None
    task = Task(plan.prompt, plan.params, request.speculation, continuing=True, stop=head.stop)
    return [task], EditReply(head, body, request, plan, documents, engine.vocabulary)


def source_of(document: Document, tenant: str, documents: Documents) -> SourceText:
    """The document's text, which is kept for later requests.

    Raises:
        ApiError: it is not known, is not the text that its hash says, is binary, or not as the other fields say.
    """
    text, digest = document.text, document.base_sha256
    if text is None:
        assert digest is not None
        text = documents.text_of(tenant, digest)
    elif digest is not None and sha256_of(text) != digest.lower():
        raise stale("The document's text is not the one that its base_sha256 is of; send what the editor has now.")
    try:
        source = SourceText.from_text(text, NEWLINES.get(document.eol or "lf", "\n"))
    except EditError as error:
        raise bad_request(str(error), "document.text") from None
    for name, found in (("eol", source.eol), ("bom", source.bom), ("final_newline", source.final_newline)):
        said = getattr(document, name)
        if said is not None and said != found:
            message = f"document.{name} is {said!r}, but the text that was sent has {found!r}; send it as the file is."
            raise bad_request(message, f"document.{name}")
    documents.keep(tenant, text)
    return source


def files_of(context: list[ContextFile]) -> tuple[File, ...]:
    """Other files, as the model is shown them.

    Raises:
        ApiError: one is binary.
    """
    return tuple(_file(other, f"context[{n}].text") for n, other in enumerate(context))


def _file(other: ContextFile, param: str) -> File:
    try:
        return File(SourceText.from_text(other.text).lines, other.name, other.language_id)
    except EditError as error:
        raise bad_request(str(error), param) from None


def _request(body: EditBody, engine: Engine, source: SourceText) -> EditRequest:
    cursor = None if body.cursor is None else _place(source, body.cursor, body.position_encoding, "cursor")
    options = body.options
    params = engine.sampling(
        max_tokens=options.max_tokens, temperature=options.temperature, top_p=options.top_p, seed=options.seed
    )
    return EditRequest(
        source,
        _task(body, cursor),
        body.document.name,
        params,
        speculation=options.speculation,
        language=body.document.language_id,
        lines=None if body.range is None else _lines(source, body.range, body.position_encoding),
        cursor=None if cursor is None else cursor[0],
        others=files_of(body.context),
    )


def _task(body: EditBody, cursor: tuple[int, int] | None) -> EditTask:
    match body.kind:
        case "apply":
            return Update(body.update or "", body.instruction or "")
        case "next_edit":
            return NextEdit(tuple(body.edit_history or ()), cursor)
        case _:
            return Instruction(body.instruction or "")


def _lines(source: SourceText, range_: Range, encoding: Encoding) -> Lines:
    """The whole lines that a range touches; at least one, if there is any."""
    first, _ = _place(source, range_.start, encoding, "range.start")
    last, column = _place(source, range_.end, encoding, "range.end")
    # A range that ends at the start of a line does not touch it, but an empty one does.
    end = last + 1 if column or range_.start == range_.end else last
    return min(first, max(len(source.lines) - 1, 0)), min(end, len(source.lines))


def _place(source: SourceText, position: Position, encoding: Encoding, param: str) -> tuple[int, int]:
    """A position as a line and a count of characters; beyond a line's end it is at its end.

    Raises:
        ApiError: there is no such line, or the position lies within a character.
    """
    total = len(source.lines)
    last = total if source.final_newline else total - 1
    if position.line > last:
        raise bad_request(f"{param}.line is {position.line}, but the document's last line is {last}.", f"{param}.line")
    line = source.lines[position.line].removesuffix("\n") if position.line < total else ""
    try:
        return position.line, column_of(line, position.character, encoding)
    except ValueError:
        message = (
            f"{param}.character is {position.character}, which lies within a character of line {position.line} "
            f"counted in {encoding}; check position_encoding."
        )
        raise bad_request(message, f"{param}.character") from None

"""The language server: what the editor asks of it, and what it asks of the editor."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any
from uuid import uuid4

from lsprotocol import types
from pygls.exceptions import JsonRpcContentModified, JsonRpcException, JsonRpcInvalidParams, JsonRpcRequestCancelled
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, default_converter, lsp_method

from lookup_spec._version import __version__
from lookup_spec.lsp.documents import OpenDocument
from lookup_spec.lsp.service import Service, ServiceError
from lookup_spec.text.lines import BOM
from lookup_spec.text.positions import Encoding

EDIT = "lookup-spec.edit"
_REQUEST_FAILED = -32803
_PAUSE = 0.12  # seconds of silence before a completion that nobody asked for by name is worth asking the model for
_FILL = 64  # tokens
_ENCODINGS: dict[types.PositionEncodingKind, Encoding] = {
    types.PositionEncodingKind.Utf8: "utf-8",
    types.PositionEncodingKind.Utf16: "utf-16",
    types.PositionEncodingKind.Utf32: "utf-32",
}


class _Protocol(LanguageServerProtocol):
    """What the library does otherwise than needed here.

    Commands run as tasks of their own, so that ``$/cancelRequest`` ends them. Documents are kept by the server alone:
    the library's ends lines at form feeds and Unicode's separators, too, and moves what it is told to fit.
    """

    @lsp_method(types.WORKSPACE_EXECUTE_COMMAND)
    async def lsp_workspace__execute_command(  # type: ignore[override]  # theirs is a generator
        self, params: types.ExecuteCommandParams
    ) -> Any:
        if params.command != EDIT:
            raise JsonRpcInvalidParams(f"There is no command {params.command!r}; there is {EDIT}.")
        return await self._ours.edit(list(params.arguments or ()))

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> None:
        self._ours.opened(params.text_document)

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> None:
        self._ours.changed(params.text_document, params.content_changes)

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> None:
        self._ours.closed(params.text_document)

    @property
    def _ours(self) -> Server:
        assert isinstance(self._server, Server)
        return self._server


class Server(LanguageServer):
    """Edits and completes through a service.

    Args:
        service: what does the work.
    """

    def __init__(self, service: Service) -> None:
        super().__init__("lookup-spec", __version__, protocol_cls=_Protocol, converter_factory=default_converter)
        self._service = service
        self._documents: dict[str, OpenDocument] = {}
        self._filling: dict[str, asyncio.Task[Any]] = {}

        @self.feature(types.TEXT_DOCUMENT_INLINE_COMPLETION, types.InlineCompletionOptions())
        async def complete(params: types.InlineCompletionParams) -> types.InlineCompletionList | None:
            return await self._complete(params)

        # Only so that the editor is told of them; the protocol does what they stand for.
        self.command(EDIT)(_never)
        self.feature(types.TEXT_DOCUMENT_DID_OPEN)(_never)

    async def edit(self, arguments: list[Any]) -> dict[str, Any]:
        """Edits a document after an instruction, and applies all hunks at once, so that one undo takes them back.

        Args:
            arguments: one object: ``uri``, ``instruction`` and, if wanted, ``range`` (its lines alone are edited) and
                ``version`` (of the document that the user saw).

        Returns:
            ``applied``, ``hunks``, ``finish_reason`` and ``version``, that of the document that was edited.

        Raises:
            JsonRpcException: nothing was changed; the message says why.
        """
        asked = _asked(arguments)
        document = self._documents.get(asked["uri"])
        if document is None:
            raise JsonRpcInvalidParams(f"{asked['uri']} is not open.")
        if asked.get("version", document.version) != document.version:
            raise JsonRpcContentModified(f"The document is at version {document.version}, not {asked['version']}.")
        hunks: list[tuple[int, int, str]] = []
        async with (
            self._progress(asked["instruction"]) as report,
            aclosing(self._service.edit(_body(document, asked))) as events,
        ):
            try:
                async for event in events:
                    self._watch(document)
                    if event["type"] == "progress":
                        report(100 * event["old_line"] // max(1, event["old_lines"]))
                    elif event["type"] == "hunk" and event["state"] == "closed":
                        hunks.append((event["old"]["start_line"], event["old"]["end_line"], event["text"]))
            except ServiceError as error:
                raise JsonRpcException(str(error), _REQUEST_FAILED) from None
        done = event
        if done["finish_reason"] in ("cancelled", "stale"):
            raise JsonRpcRequestCancelled("The edit was stopped; nothing was changed.")
        _check(document, hunks, done["result_sha256"])
        if hunks:
            await self._apply(document, hunks, asked["instruction"])
        return {
            "applied": bool(hunks),
            "hunks": len(hunks),
            "finish_reason": done["finish_reason"],
            "version": document.version,
        }

    def _watch(self, document: OpenDocument) -> None:
        """An edit of a text that the editor no longer has is of no use."""
        if self._documents.get(document.uri) is not document:
            raise JsonRpcContentModified("The document was changed while it was being edited; nothing was applied.")

    async def _apply(self, document: OpenDocument, hunks: list[tuple[int, int, str]], label: str) -> None:
        self._watch(document)
        edits = document.edits(hunks)
        capabilities = self.client_capabilities.workspace
        if capabilities and capabilities.workspace_edit and capabilities.workspace_edit.document_changes:
            identifier = types.OptionalVersionedTextDocumentIdentifier(uri=document.uri, version=document.version)
            edit = types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(identifier, edits)])
        else:
            edit = types.WorkspaceEdit(changes={document.uri: edits})
        result = await self.workspace_apply_edit_async(types.ApplyWorkspaceEditParams(edit, label))
        if not result.applied:
            reason = result.failure_reason or "no reason given"
            raise JsonRpcException(f"The editor did not apply the edit ({reason}).", _REQUEST_FAILED)

    @asynccontextmanager
    async def _progress(self, title: str) -> AsyncIterator[Callable[[int], None]]:
        """A progress bar, if the editor has such; cancelling there ends the work."""
        window = self.client_capabilities.window
        if not (window and window.work_done_progress):
            yield lambda _: None
            return
        token, bar, task = str(uuid4()), self.work_done_progress, asyncio.current_task()
        assert task is not None
        await bar.create_async(token)
        bar.tokens[token].add_done_callback(lambda future: future.cancelled() and task.cancel())
        bar.begin(token, types.WorkDoneProgressBegin(title=title, percentage=0, cancellable=True))
        try:
            yield lambda share: bar.report(token, types.WorkDoneProgressReport(percentage=share, cancellable=True))
        finally:
            bar.end(token, types.WorkDoneProgressEnd())
            del bar.tokens[token]

    async def _complete(self, params: types.InlineCompletionParams) -> types.InlineCompletionList | None:
        """What belongs at the cursor. None where there is no service or its model cannot tell: typing goes on."""
        document = self._documents.get(params.text_document.uri)
        task = asyncio.current_task()
        if document is None or task is None:
            return None
        if (older := self._filling.get(document.uri)) is not None:
            older.cancel()
        self._filling[document.uri] = task
        try:
            if params.context.trigger_kind is types.InlineCompletionTriggerKind.Automatic:
                await asyncio.sleep(_PAUSE)
            at = document.offset(params.position)
            start = document.offset(types.Position(params.position.line, 0))
            text = document.text
            filled = await self._service.fill(text[:start], text[start:at], text[at:], _FILL)
        except ServiceError:
            return None
        finally:
            if self._filling.get(document.uri) is task:
                del self._filling[document.uri]
        if not filled.strip() or self._documents.get(document.uri) is not document:
            return None
        here = types.Range(params.position, params.position)
        return types.InlineCompletionList([types.InlineCompletionItem(filled, range=here)])

    def opened(self, item: types.TextDocumentItem) -> None:
        """The editor has a document."""
        counts = self.server_capabilities.position_encoding or types.PositionEncodingKind.Utf16
        encoding = _ENCODINGS[types.PositionEncodingKind(counts)]
        self._documents[item.uri] = OpenDocument(item.uri, item.language_id, item.version, item.text, encoding)

    def changed(
        self,
        named: types.VersionedTextDocumentIdentifier,
        changes: Sequence[types.TextDocumentContentChangeEvent],
    ) -> None:
        """The editor's document is another one now."""
        self._documents[named.uri] = self._documents[named.uri].changed(named.version, changes)

    def closed(self, named: types.TextDocumentIdentifier) -> None:
        """The editor no longer has it."""
        self._documents.pop(named.uri, None)


def _asked(arguments: list[Any]) -> dict[str, Any]:
    """The command's argument, checked."""
    asked = arguments[0] if len(arguments) == 1 else None
    if not isinstance(asked, dict):
        raise JsonRpcInvalidParams(f"{EDIT} takes one object: uri, instruction, and range and version if wanted.")
    for name, kind in (("uri", str), ("instruction", str)):
        if not isinstance(asked.get(name), kind) or not asked[name].strip():
            raise JsonRpcInvalidParams(f"The argument {name} of {EDIT} is missing or empty.")
    unknown = set(asked) - {"uri", "instruction", "range", "version"}
    if unknown:
        raise JsonRpcInvalidParams(f"{EDIT} does not know {', '.join(sorted(unknown))}; leave it out.")
    return {name: value for name, value in asked.items() if value is not None}


def _body(document: OpenDocument, asked: dict[str, Any]) -> dict[str, Any]:
    named = {"uri": document.uri, "language_id": document.language_id, "version": document.version}
    body = {
        "document": {**named, "text": document.text},
        "instruction": asked["instruction"],
        "position_encoding": document.encoding,
    }
    return {**body, "range": asked["range"]} if "range" in asked else body


def _check(document: OpenDocument, hunks: list[tuple[int, int, str]], digest: str) -> None:
    """What the hunks make must be what the service means."""
    mark = BOM if document.text.startswith(BOM) else ""
    lines = OpenDocument("", "", 0, document.text.removeprefix(BOM), "utf-32").lines
    for start, end, text in reversed(hunks):
        lines[start:end] = [text]
    found = hashlib.sha256((mark + "".join(lines)).encode("utf-8", "surrogatepass")).hexdigest()
    if found != digest:
        raise JsonRpcException("The edit does not fit the document; nothing was applied.", _REQUEST_FAILED)


def _never() -> None:
    raise AssertionError("the protocol does this itself")

"""An edit's events as they are sent, and the same as one reply."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lookup_server.edits.documents import Documents, sha256_of
from lookup_server.edits.requests import Document, EditBody
from lookup_server.edits.trace import Trace
from lookup_server.errors import from_exception
from lookup_server.openai.replies import accepted_prediction
from lookup_server.runner import Stop
from lookup_spec.engine.session import Piece
from lookup_spec.errors import EditError
from lookup_spec.pipeline.edit import EditDone, EditHunk, EditProgress, EditRun
from lookup_spec.pipeline.edit_plan import EditPlan, EditRequest
from lookup_spec.stats import Stats
from lookup_spec.text.detokenize import Vocabulary
from lookup_spec.text.edit_task import Lines
from lookup_spec.text.lines import SourceText

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class EditHead:
    """What is known of an edit before its document is read.

    Attributes:
        model: the name that the caller used.
        tenant: whose edit it is.
        edit_id: its name.
        stop: ends it early.
    """

    model: str
    tenant: str
    edit_id: str
    stop: Stop = field(default_factory=Stop)
    created: int = field(default_factory=lambda: int(time.time()))


class EditReply:
    """The reply to an edit.

    Args:
        head: what is known before.
        body: what was asked.
        request: the same, read.
        plan: how it was put to the model.
        documents: where the result goes, so that it can be edited further by its hash.
        vocabulary: of the model.
    """

    done = b""

    def __init__(
        self,
        head: EditHead,
        body: EditBody,
        request: EditRequest,
        plan: EditPlan,
        documents: Documents,
        vocabulary: Vocabulary,
    ) -> None:
        self._head = head
        self._body = body
        self._source = request.source
        self._plan = plan
        self._documents = documents
        self._run = EditRun(request, plan, previews=body.options.granularity == "line")
        self._trace = Trace(vocabulary) if body.options.trace else None
        self._passes: list[Json] = []
        self._seq = 0
        self._place = (plan.lines[0], 0)
        self._hunks: list[Json] = []
        self._end: EditDone | None = None

    def opening(self) -> Iterator[Json]:
        """The start event."""
        yield self._event("start", **self._about())

    def chunks(self, _: int, piece: Piece) -> Iterator[Json]:
        """The events that a piece of the answer brings.

        Raises:
            EditError: the answer cannot be read.
        """
        traced = None if self._trace is None else self._trace.take(piece)
        if traced is not None:
            self._passes.append(traced)
            yield self._event("trace", **traced)
        for event in self._run.take(piece):
            match event:
                case EditProgress(line=line, lines=lines, written=written):
                    if (line, written) != self._place:
                        places = {"old_line": line, "old_lines": lines, "new_lines": written}
                        yield self._event("progress", **places, **_speculation(piece.stats))
                    self._place = (line, written)
                case EditHunk(number, state, hunk):
                    told = {"hunk_id": number, "old": _lines((hunk.start, hunk.end)), "text": hunk.text}
                    if state == "closed":
                        self._hunks.append(told)
                    yield self._event("hunk", state=state, **told)
                case EditDone():
                    self._end = event
                    yield self._event("done", hunks=event.hunks, **self._ending(event))

    def closing(self) -> Iterator[Json]:
        """Nothing: the done event was the last."""
        yield from ()

    def breaking(self, error: Exception) -> Iterator[Json]:
        """The error event. Closed hunks are whole and may be kept, unless the answer turned out to be no edit."""
        kept = not isinstance(error, EditError)
        yield self._event("error", **from_exception(error).body(), safe_to_keep=kept)

    def whole(self) -> Json:
        """All in one."""
        assert self._end is not None
        return {
            "object": "edit",
            "edit_id": self._head.edit_id,
            **self._about(),
            "hunks": self._hunks,
            "text": self._end.text,
            **({} if self._trace is None else {"trace": self._passes}),
            **self._ending(self._end),
        }

    def _event(self, type_: str, **fields: Any) -> Json:
        event = {"type": type_, "edit_id": self._head.edit_id, "seq": self._seq, "uri": self._body.document.uri}
        self._seq += 1
        return {**event, **fields}

    def _about(self) -> Json:
        return {
            "created": self._head.created,
            "model": self._head.model,
            "mode": self._body.kind,
            "document": described(self._body.document, self._source),
            "range": _lines(self._plan.lines),
            "shown": _lines(self._plan.shown),
            "narrowed": self._plan.narrowed,
            "context_files": self._plan.others,
        }

    def _ending(self, end: EditDone) -> Json:
        stopped = end.finish_reason == "cancelled"
        return {
            "finish_reason": (self._head.stop.reason or "cancelled") if stopped else end.finish_reason,
            "truncated": not end.complete,
            "result_sha256": self._documents.keep(self._head.tenant, end.text),
            "usage": self._usage(end.stats),
            **({} if self._trace is None else {"stats": end.stats.as_dict()}),
        }

    def _usage(self, stats: Stats) -> Json:
        accepted = accepted_prediction(stats, self._plan.predicted)
        return {
            "prompt_tokens": stats.prompt_tokens,
            "completion_tokens": stats.completion_tokens,
            "total_tokens": stats.prompt_tokens + stats.completion_tokens,
            "prompt_tokens_details": {"cached_tokens": stats.cached_tokens},
            "completion_tokens_details": {
                "accepted_prediction_tokens": accepted,
                "rejected_prediction_tokens": self._plan.predicted - accepted,
            },
        }


def described(document: Document, source: SourceText) -> Json:
    """A document as the service read it."""
    return {
        "uri": document.uri,
        "version": document.version,
        "sha256": sha256_of(source.original),
        "lines": len(source.lines),
        "eol": source.eol,
        "bom": source.bom,
        "final_newline": source.final_newline,
    }


def _lines(lines: Lines) -> Json:
    return {"start_line": lines[0], "end_line": lines[1]}


def _speculation(stats: Stats) -> Json:
    return {
        "tokens": stats.completion_tokens,
        "accepted": stats.accepted,
        "rejected": stats.drafted - stats.accepted,
    }

"""An edit of a file, from request to finished file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from lookup_spec.engine.session import Piece
from lookup_spec.pipeline.edit_plan import EditPlan, EditRequest, plan_edit
from lookup_spec.pipeline.engine import Engine
from lookup_spec.stats import Stats
from lookup_spec.text.edit_stream import EditStream
from lookup_spec.text.hunks import Hunk

EditEnd: TypeAlias = Literal["stop", "no_change", "length", "cancelled", "stale"]


@dataclass(frozen=True, slots=True)
class EditHunk:
    """A change to the file.

    Attributes:
        number: of the hunk, from 0.
        state: only a ``"closed"`` hunk is to be applied. Before that it may be shown as it grows, ``"open"`` and then
            with each ``"delta"`` more lines, whose ends are not final; what is closed then may be less, or several.
        hunk: where and what.
    """

    number: int
    state: Literal["open", "delta", "closed"]
    hunk: Hunk


@dataclass(frozen=True, slots=True)
class EditProgress:
    """One step of a running edit.

    Attributes:
        piece: what the model wrote.
        line: the line up to which the file is settled, kept or changed.
        lines: lines in all.
        written: lines of what replaces them, so far.
    """

    piece: Piece
    line: int
    lines: int
    written: int


@dataclass(frozen=True, slots=True)
class EditDone:
    """The end of an edit.

    Attributes:
        finish_reason: ``"stop"``; ``"no_change"`` if the answer is the file as it was; or why it ended early.
        text: the file with all closed hunks applied, line ends, byte-order mark and final newline as they were.
        hunks: how many those are.
        stats: what it cost.
    """

    finish_reason: EditEnd
    text: str
    hunks: int
    stats: Stats

    @property
    def complete(self) -> bool:
        """Whether the whole answer came; if not, what it would have changed further on is as it was."""
        return self.finish_reason in ("stop", "no_change")


EditEvent: TypeAlias = EditHunk | EditProgress | EditDone


class EditRun:
    """A running edit: pieces of the answer in, events out.

    Args:
        request: what was asked.
        plan: how it was put to the model.
        previews: hunks show as they grow.
    """

    def __init__(self, request: EditRequest, plan: EditPlan, *, previews: bool = False) -> None:
        self._lines = len(request.source.lines)
        self._newline = request.source.newline
        self._stream = EditStream(request.source, plan.question.reader(), *plan.lines)
        self._previews = previews
        self._closed = 0
        self._shown: int | None = None

    def take(self, piece: Piece) -> Iterator[EditEvent]:
        """What a piece of the answer brings; after the last one, the end.

        Raises:
            EditError: the answer cannot be read; no hunk, not even a closed one, may then be applied.
        """
        hunks = self._stream.push(piece.text)
        if piece.finish_reason == "stop":
            hunks += self._stream.finish()
        yield from self._close(hunks)
        if self._previews and piece.finish_reason is None:
            yield from self._preview(self._stream.pending)
        yield EditProgress(piece, self._stream.line, self._lines, self._stream.written)
        if piece.finish_reason is not None:
            yield self.end(piece.finish_reason, piece.stats)

    def end(self, reason: EditEnd, stats: Stats) -> EditDone:
        """The end, where the edit stands: what is not closed is as it was."""
        if reason == "stop" and not self._closed:
            reason = "no_change"
        return EditDone(reason, self._stream.text, self._closed, stats)

    def _close(self, hunks: Sequence[Hunk]) -> Iterator[EditHunk]:
        for hunk in hunks:
            yield EditHunk(self._closed, "closed", hunk)
            self._closed += 1
            self._shown = None

    def _preview(self, pending: Sequence[str]) -> Iterator[EditHunk]:
        line = self._stream.line
        if pending and self._shown is None:
            yield EditHunk(self._closed, "open", Hunk(line, line, ""))
            self._shown = 0
        if pending[self._shown or 0 :]:
            text = "".join(pending[self._shown or 0 :]).replace("\n", self._newline)
            yield EditHunk(self._closed, "delta", Hunk(line, line, text))
            self._shown = len(pending)


def edit(engine: Engine, request: EditRequest) -> Iterator[EditEvent]:
    """Edits a file. Yields what happens and, last, the end; closing the iterator stops the work.

    Raises:
        EditError: there is nothing to do, or the answer cannot safely replace the file.
        ContextLengthError: the file does not fit the model.
    """
    plan = plan_edit(engine, request)
    run = EditRun(request, plan)
    session = engine.submit(plan.prompt, plan.params, speculation=request.speculation, continuing=True)
    for piece in engine.follow(session):
        yield from run.take(piece)

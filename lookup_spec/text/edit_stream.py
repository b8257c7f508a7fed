"""An answer that rewrites a file, as hunks while it streams in."""

from __future__ import annotations

from lookup_spec.text.answer import AnswerReader
from lookup_spec.text.hunks import Hunk, HunkStream, apply_hunks
from lookup_spec.text.lines import SourceText

_LOSS = 8  # an answer that may be a part of the file may not yet take away more than an eighth of its lines


class EditStream:
    """Takes in an answer as it comes and gives hunks; how the answer was cut makes no difference.

    While the answer may turn out to be a fragment, which would be refused, hunks wait that take away the file's
    beginning or many of its lines.

    Args:
        source: the file.
        reader: takes the new lines out of the answer.
        start, end: the lines that they replace.

    Attributes:
        hunks: all hunks so far; whenever the answer ends, they may be applied.
    """

    def __init__(self, source: SourceText, reader: AnswerReader, start: int, end: int) -> None:
        self.hunks: list[Hunk] = []
        self._source = source
        self._reader = reader
        self._stream = HunkStream(source, start, end)
        self._start = start
        self._spare = (end - start) // _LOSS
        self._waiting: list[Hunk] = []

    @property
    def line(self) -> int:
        """The line up to which the file is settled, kept or changed."""
        return self._stream.passed

    @property
    def written(self) -> int:
        """Lines of the new version so far."""
        return self._stream.written

    @property
    def pending(self) -> tuple[str, ...]:
        """New lines behind that place, ended by ``\\n`` alone; none while hunks wait."""
        return () if self._waiting else self._stream.pending

    @property
    def text(self) -> str:
        """The file with the hunks so far, its line ends and byte-order mark as they were."""
        return apply_hunks(self._source, self.hunks)

    def push(self, text: str) -> list[Hunk]:
        """Takes in more of the answer; returns the hunks that are sure now."""
        self._waiting += self._stream.push(self._reader.push(text))
        return self._told()

    def finish(self) -> list[Hunk]:
        """The remaining hunks, now that the answer is complete.

        Raises:
            EditError: the answer cannot be read; the hunks given so far may be wrong, too.
        """
        last = self._reader.finish()
        hunks = [*self._waiting, *self._stream.push(last), *self._stream.finish()]
        self._waiting = []
        self.hunks += hunks
        return hunks

    def _told(self) -> list[Hunk]:
        """The hunks that need not wait any more."""
        hunks: list[Hunk] = []
        while self._waiting:
            hunk = self._waiting[0]
            loss = hunk.end - hunk.start - len(SourceText.from_text(hunk.text).lines)
            if loss > 0 and self._reader.may_be_partial and (hunk.start == self._start or loss > self._spare):
                break
            self._spare -= max(loss, 0)
            hunks.append(self._waiting.pop(0))
        self.hunks += hunks
        return hunks

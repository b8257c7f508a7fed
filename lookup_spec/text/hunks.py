"""A new version of a file as changes to its bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from lookup_spec.text.align import Aligner, Change
from lookup_spec.text.lines import BOM, SourceText, with_plain_ends

_LINE = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True, slots=True)
class Hunk:
    """One replacement in a file.

    Attributes:
        start, end: the lines ``start:end`` of the file before any hunk is applied, counted from 0, are replaced;
            equal if text is inserted. Only LF, CR and CRLF end lines; a byte-order mark is not part of the first one.
        text: what stands there instead, with the line ends that the file shall have.
    """

    start: int
    end: int
    text: str


class HunkStream:
    """Turns a new version, as it comes, into hunks: ascending, disjoint, never taken back.

    Lines that stand in both versions keep their own line ends. A changed line keeps that of the line it replaces; an
    added one takes that of the line above, at the top of the file that of the line below.

    Args:
        source: the file.
        start, end: the lines that the new version replaces; no hunk goes beyond them.

    Attributes:
        written: lines of the new version so far.
    """

    def __init__(self, source: SourceText, start: int = 0, end: int | None = None) -> None:
        self._source = source
        self._start = start
        self._end = len(source.lines) if end is None else end
        self._endings = [ending or source.newline for ending in source.endings]
        self._aligner = Aligner(source.lines[self._start : self._end])
        self.written = 0
        self._rest = ""
        self._marked = start < self._end and source.lines[start].startswith(BOM)
        self._begun = False
        # Where the last hunk ended and how, for the line end before the next one.
        self._edge = (-1, "")

    @property
    def passed(self) -> int:
        """The line up to which the file is settled."""
        return self._start + self._aligner.passed

    @property
    def pending(self) -> tuple[str, ...]:
        """New lines behind that place that no hunk has told yet, ended by ``\\n`` alone."""
        return tuple(self._aligner.pending)

    def push(self, text: str) -> list[Hunk]:
        """Takes in more of the new version, whatever its line ends; returns what is sure now."""
        *complete, self._rest = (self._rest + text).split("\n")
        return [hunk for line in complete for hunk in self._push(f"{line}\n")]

    def finish(self) -> list[Hunk]:
        """The remaining hunks, now that the new version is complete."""
        rest, self._rest = self._rest, ""
        return [*self._push(rest), *self._hunks(self._aligner.finish(), self._end)]

    def _push(self, text: str) -> list[Hunk]:
        if not self._begun:
            text = text if self._marked else text.removeprefix(BOM)
            self._begun = True
        hunks: list[Hunk] = []
        for line in _LINE.findall(with_plain_ends(text)):
            self.written += 1
            hunks += self._hunks(self._aligner.push(line), self.passed)
        return hunks

    def _hunks(self, changes: Sequence[Change], end: int) -> list[Hunk]:
        """Hunks of successive changes, behind which the lines up to ``end`` are kept."""
        starts = [*(self._start + change.start for change in changes), end]
        return [self._hunk(change, limit) for change, (_, limit) in zip(changes, pairwise(starts), strict=True)]

    def _hunk(self, change: Change, limit: int) -> Hunk:
        start, end = self._start + change.start, self._start + change.end
        paired = self._endings[start:end][: len(change.lines)]
        above = (paired or self._endings[:start])[-1:] or self._endings[:1] or [self._source.newline]
        endings = paired + above * (len(change.lines) - len(paired))
        before = self._edge[1] if start == self._edge[0] else self._source.endings[start - 1] if start else ""
        parts: list[str] = []
        for line, ending in zip(change.lines, endings, strict=True):
            # Behind a CR, an empty line that ended in LF would read as part of a CRLF and be gone.
            before = "\r" if (line, before, ending) == ("\n", "\r", "\n") else ending * line.endswith("\n")
            parts.append(line.removesuffix("\n") + before)
        while end < limit and before == "\r" and self._source.stretch(end, end + 1) == "\n":
            parts.append(before)
            end += 1
        self._edge = (end, before)
        return Hunk(start, end, "".join(parts))


def apply_hunks(source: SourceText, hunks: Iterable[Hunk]) -> str:
    """The file's text with all hunks applied, its byte-order mark included."""
    parts = [BOM * source.bom]
    at = 0
    for hunk in hunks:
        parts += [source.stretch(at, hunk.start), hunk.text]
        at = hunk.end
    return "".join([*parts, source.stretch(at, len(source.lines))])


def rewritten(source: SourceText, new_text: str) -> str:
    """The file's text with new contents; ``new_text`` also decides whether the last line is ended."""
    stream = HunkStream(source)
    return apply_hunks(source, [*stream.push(new_text), *stream.finish()])

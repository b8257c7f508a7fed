"""Open documents, as the editor has them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import accumulate

from lsprotocol import types

from lookup_spec.text.lines import BOM
from lookup_spec.text.positions import Encoding, column_of, units_of

# Form feeds and Unicode's separators end no line, neither in the Language Server Protocol nor in the edit protocol.
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


@dataclass(frozen=True, slots=True)
class OpenDocument:
    """One version of a document; a change makes a new one.

    Attributes:
        uri: names it.
        language_id: the editor's name of its language.
        version: the editor's.
        text: all of it.
        encoding: what the editor counts characters in.
    """

    uri: str
    language_id: str
    version: int
    text: str
    encoding: Encoding

    @property
    def lines(self) -> list[str]:
        """The lines with their ends."""
        return _LINE.findall(self.text)

    def offset(self, position: types.Position) -> int:
        """How many characters stand before a position; beyond the end of a line or of the text it is there."""
        lines = self.lines
        if position.line >= len(lines):
            return len(self.text)
        line = lines[position.line].rstrip("\r\n")
        units = position.character
        while True:
            try:
                column = column_of(line, units, self.encoding)
                break
            except ValueError:
                units -= 1  # within a character: before it
        return sum(map(len, lines[: position.line])) + column

    def position(self, offset: int) -> types.Position:
        """Where the character with this offset stands: line ends at the end of their line, the end of the text for what
        lies beyond."""
        lines = self.lines
        starts = list(accumulate(map(len, lines), initial=0))
        if offset >= len(self.text) and (not lines or lines[-1][-1] in "\r\n"):
            return types.Position(len(lines), 0)
        line = next((n for n in range(len(lines)) if offset < starts[n + 1]), len(lines) - 1)
        before = lines[line].rstrip("\r\n")[: offset - starts[line]] if lines else ""
        return types.Position(line, units_of(before, self.encoding))

    def changed(self, version: int, changes: Iterable[types.TextDocumentContentChangeEvent]) -> OpenDocument:
        """The document after changes, each of which counts in what the one before it made."""
        new = replace(self, version=version)
        for change in changes:
            if isinstance(change, types.TextDocumentContentChangePartial):
                start, end = new.offset(change.range.start), new.offset(change.range.end)
                new = replace(new, text=new.text[:start] + change.text + new.text[end:])
            else:
                new = replace(new, text=change.text)
        return new

    def edits(self, hunks: Iterable[tuple[int, int, str]]) -> list[types.TextEdit]:
        """Hunks of the edit protocol (first line, line behind the last, text) as the editor takes them."""
        lines = self.lines
        starts = list(accumulate(map(len, lines), initial=0))
        # The protocol's first line begins behind a byte-order mark, and its last place is the end of the text.
        starts[0] += self.text.startswith(BOM)
        edits, before = list[types.TextEdit](), 0
        for start, end, text in hunks:
            first, behind = (starts[min(line, len(lines))] for line in (start, end))
            mark = _line_end(text)
            if before < start == len(lines) and mark and mark == _line_end(self.text):
                # Behind the last line's end editors have no place, and Neovim adds a line to what is put there; a new
                # line before that line's end makes the same text.
                first = behind = first - len(mark)
                text = mark + text.removesuffix(mark)  # noqa: PLW2901 - the same line, moved
            before = end
            edits.append(types.TextEdit(types.Range(self.position(first), self.position(behind)), text))
        return edits


def _line_end(text: str) -> str:
    """What the text's last line ends with."""
    return next((end for end in ("\r\n", "\n", "\r") if text.endswith(end)), "")

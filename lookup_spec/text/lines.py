"""A file's text as the model sees it, and what else its bytes hold: line ends, byte-order mark, final newline."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Literal

from lookup_spec.errors import EditError

Eol = Literal["lf", "crlf", "cr", "mixed"]
BOM = "\ufeff"
NEWLINES: dict[Eol, str] = {"lf": "\n", "crlf": "\r\n", "cr": "\r"}
_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")
_BREAK = re.compile(r"\r\n|\r")


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text as the model sees it, with what is needed to write an edited version as its file was written.

    Attributes:
        lines: the contents, every line ended by ``\\n`` alone, without byte-order mark; the last is not ended if the
            file lacks a final newline.
        endings: how each line ended in the file; the last is empty if the file lacks a final newline.
        bom: the file begins with a byte-order mark.
        newline: how an added line ends if no neighbour tells: as most lines of the file do.
    """

    lines: tuple[str, ...]
    endings: tuple[str, ...]
    bom: bool
    newline: str

    @classmethod
    def from_bytes(cls, data: bytes) -> SourceText:
        """Reads a file's bytes.

        Raises:
            EditError: they are not UTF-8 text.
        """
        try:
            return cls.from_text(data.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise EditError(
                f"The file is not UTF-8 text (byte 0x{data[error.start]:02X} at offset {error.start}); "
                "convert it first."
            ) from error

    @classmethod
    def from_text(cls, text: str, newline: str = "\n") -> SourceText:
        """Reads a file's decoded contents, line ends and byte-order mark as they are.

        Args:
            text: the contents.
            newline: the line end of a file that has none to go by.

        Raises:
            EditError: it is a binary file.
        """
        if "\0" in text:
            raise EditError("The file holds NUL bytes, so it is binary; only text can be edited.")
        bom = text.startswith(BOM)
        found = [(line[1], line[2]) for line in _LINE.finditer(text, len(BOM) * bom) if line[0]]
        endings = tuple(ending for _, ending in found)
        counts = Counter(filter(None, endings))
        usual = counts.most_common(1)[0][0] if counts else newline
        return cls(tuple(line + "\n" * bool(ending) for line, ending in found), endings, bom, usual)

    @property
    def text(self) -> str:
        """All lines, joined."""
        return "".join(self.lines)

    @property
    def original(self) -> str:
        """The text as the file has it."""
        return BOM * self.bom + self.stretch(0, len(self.lines))

    @property
    def eol(self) -> Eol:
        """The kind of line end, or ``"mixed"``."""
        kinds = {ending for ending in self.endings if ending} or {self.newline}
        return next((eol for eol, ending in NEWLINES.items() if kinds == {ending}), "mixed")

    @property
    def final_newline(self) -> bool:
        """Whether the last line is ended; a file without lines counts as one that would be."""
        return not self.endings or bool(self.endings[-1])

    def stretch(self, start: int, end: int) -> str:
        """The lines ``start:end`` as the file has them."""
        pairs = zip(self.lines[start:end], self.endings[start:end], strict=True)
        return "".join(line.removesuffix("\n") + ending for line, ending in pairs)


def with_plain_ends(text: str) -> str:
    """A text with every line ended by ``\\n`` alone."""
    return _BREAK.sub("\n", text)

"""A file's text for the model, and the way back to its bytes: line ends, byte-order mark, final newline."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from lookup_spec.errors import EditError

Eol = Literal["lf", "crlf", "cr", "mixed"]
_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")
_BREAK = re.compile(r"\r\n|\r")
_BOM = "\ufeff"
_NAMES: dict[str, Eol] = {"\n": "lf", "\r\n": "crlf", "\r": "cr"}


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text as the model sees it, with what is needed to write an edited version as its file was written.

    Attributes:
        text: the contents, every line ended by ``\\n`` alone, without byte-order mark.
        endings: how each line of ``text`` ended in the file; the last is empty if the file lacked a final
            newline.
        bom: the file began with a byte-order mark.
    """

    text: str
    endings: tuple[str, ...]
    bom: bool

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
    def from_text(cls, text: str) -> SourceText:
        """Reads a file's decoded contents, line ends and byte-order mark as they are.

        Raises:
            EditError: it is a binary file.
        """
        if "\0" in text:
            raise EditError("The file holds NUL bytes, so it is binary; only text can be edited.")
        bom = text.startswith(_BOM)
        lines = _split(text[1:] if bom else text)
        endings = tuple(ending for _, ending in lines)
        return cls("".join(line + ("\n" if ending else "") for line, ending in lines), endings, bom)

    @property
    def eol(self) -> Eol:
        """The kind of line end, or ``"mixed"``; ``"lf"`` for a text of less than two lines."""
        kinds = {ending for ending in self.endings if ending}
        return _NAMES[kinds.pop()] if len(kinds) == 1 else "mixed" if kinds else "lf"

    @property
    def final_newline(self) -> bool:
        """Whether the last line is ended; a file without lines counts as one that would be."""
        return not self.endings or bool(self.endings[-1])

    def restore(self, new_text: str) -> bytes:
        """The bytes of an edited version.

        Lines that stand in both versions keep their own endings. A changed line keeps the ending of the line
        it replaces; an added one takes that of the line above, at the top of the file that of the line below.
        Whether the last line is ended is decided by ``new_text``.
        """
        return self.restore_text(new_text).encode("utf-8")

    def restore_text(self, new_text: str) -> str:
        """The same as :meth:`restore`, before encoding."""
        if not self.text.startswith(_BOM):
            new_text = new_text.removeprefix(_BOM)
        lines = _split(_BREAK.sub("\n", new_text))
        endings = self._endings_of([line for line, _ in lines])
        body = "".join(line + (ending if ended else "") for (line, ended), ending in zip(lines, endings, strict=True))
        return (_BOM if self.bom else "") + body

    def _endings_of(self, new: Sequence[str]) -> list[str]:
        """An ending for each line of the new version, as if all of them were ended."""
        counts = Counter(ending for ending in self.endings if ending)
        usual = counts.most_common(1)[0][0] if counts else "\n"
        if len(counts) <= 1:
            return [usual] * len(new)
        old = [line for line, _ in _split(self.text)]
        known = [ending or usual for ending in self.endings]
        endings: list[str] = []
        for (old_start, old_end), (new_start, new_end) in _aligned(old, new):
            paired = known[old_start:old_end][: new_end - new_start]
            above = (paired or known[:old_start])[-1:] or known[:1]
            endings += paired + above * (new_end - new_start - len(paired))
        for n in range(1, len(new)):
            if not new[n] and endings[n - 1] == "\r" and endings[n] == "\n":
                endings[n] = "\r"  # or the two would read as one CRLF, and the empty line be gone
        return endings


def _split(text: str) -> list[tuple[str, str]]:
    """Lines and their endings; only CR, LF and CRLF end a line."""
    return [(line[1], line[2]) for line in _LINE.finditer(text) if line[0]]


def _aligned(old: Sequence[str], new: Sequence[str]) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Stretches of both versions that correspond, in order and without gaps; equal or changed alike.

    What is common at both ends is taken off first, so that a small change in a long file costs little.
    """
    shorter = min(len(old), len(new))
    head = next((n for n in range(shorter) if old[n] != new[n]), shorter)
    tail = next((n for n in range(shorter - head) if old[-1 - n] != new[-1 - n]), shorter - head)
    middle = SequenceMatcher(None, old[head : len(old) - tail], new[head : len(new) - tail], autojunk=False)
    return [
        ((0, head), (0, head)),
        *(((head + i1, head + i2), (head + j1, head + j2)) for _, i1, i2, j1, j2 in middle.get_opcodes()),
        ((len(old) - tail, len(old)), (len(new) - tail, len(new))),
    ]

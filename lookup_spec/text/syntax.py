"""What is known about a program's text: its definitions, its statements, and the class of every character."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple


class TokenClass(IntEnum):
    """What a character is part of."""

    OTHER = 0
    """Space, punctuation, operators, and everything in a text of no known language."""
    IDENTIFIER = 1
    KEYWORD = 2
    NUMBER = 3
    STRING = 4
    COMMENT = 5
    """A comment, or an attribute above a definition."""


class Part(NamedTuple):
    """The characters ``start:end``.

    Attributes:
        start: of a definition, with the comments right above it, its decorators and the like.
        end: one past its last character.
        depth: how many parts of the same sort it lies in.
        name: of a definition; empty if it has none.
    """

    start: int
    end: int
    depth: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class Syntax:
    """Facts about one text. Positions count characters (code points).

    Attributes:
        text: what they are about.
        language: its name, or ``""`` if nothing is known but the text.
        classes: a :class:`TokenClass` for every character.
        definitions: functions, classes, types and the like, the outer before the inner.
        statements: statements, members and entries, likewise; definitions are among them.
    """

    text: str
    language: str
    classes: bytes
    definitions: tuple[Part, ...]
    statements: tuple[Part, ...]

    @classmethod
    def unknown(cls, text: str) -> Syntax:
        """Of a text of which nothing is known."""
        return cls(text, "", bytes(len(text)), (), ())

    def enclosing(self, start: int, end: int, max_size: int) -> tuple[int, int] | None:
        """Whole lines around ``start:end`` that can be rewritten by themselves.

        The smallest definition that covers the stretch, or neighbouring definitions that do together; where
        that is longer than ``max_size``, the largest run of neighbouring statements within that is not; else
        the lines of the stretch.

        Args:
            start: first character; space around the stretch does not count.
            end: one past the last one; may equal ``start``.
            max_size: most characters.

        Returns:
            The stretch ``start:end``, or None if even the lines are too long.

        Raises:
            ValueError: this is no stretch of the text.
        """
        if not 0 <= start <= end <= len(self.text):
            raise ValueError(f"{start}:{end} is no stretch of a text of {len(self.text)} characters")
        start, end = self._stripped(start, end)
        definitions = list(_covers(self.definitions, start, end))
        tries = [*definitions[-1:], *_covers(self.statements, start, end), (start, end)]
        lines = (self._lines(first, last) for first, last in tries)
        return next(((first, last) for first, last in lines if last - first <= max_size), None)

    def split(self, max_size: int) -> list[tuple[int, int]]:
        """Cuts the text into stretches of at most ``max_size`` characters, one after the other.

        A cut lies in front of an outer definition if there is one in reach, else of an inner one, else of a
        statement, else of a line, and otherwise anywhere.

        Raises:
            ValueError: ``max_size`` is less than 1.
        """
        if max_size < 1:
            raise ValueError(f"max_size is {max_size}; give at least 1")
        cuts = self._cuts()
        stretches, start, first = list[tuple[int, int]](), 0, 0
        while start < len(self.text):
            end = min(start + max_size, len(self.text))
            if end < len(self.text):
                while first < len(cuts) and cuts[first][0] <= start:
                    first += 1
                last = first
                while last < len(cuts) and cuts[last][0] <= end:
                    last += 1
                # The best rank, and of that the last place.
                end = min(cuts[first:last], key=lambda cut: (cut[1], -cut[0]), default=(end, 0))[0]
            stretches.append((start, end))
            start = end
        return stretches

    def _cuts(self) -> list[tuple[int, int]]:
        """Places before which the text may be cut, ascending, each with a rank, the best being the lowest."""
        ranks: dict[int, int] = {}
        worst = len(self.definitions) + len(self.statements)
        for place in _line_starts(self.text):
            ranks[place] = worst
        for parts, offset in ((self.statements, len(self.definitions)), (self.definitions, 0)):
            for part in parts:
                place = self._line_start(part.start)
                ranks[place] = min(ranks.get(place, worst), part.depth + offset)
        return sorted(ranks.items())

    def _stripped(self, start: int, end: int) -> tuple[int, int]:
        inner = self.text[start:end]
        if not inner.strip():
            return start, start
        return start + len(inner) - len(inner.lstrip()), end - len(inner) + len(inner.rstrip())

    def _lines(self, start: int, end: int) -> tuple[int, int]:
        """Extended to whole lines, the last one's end included."""
        newline = self.text.find("\n", max(start, end - 1))
        return self._line_start(start), len(self.text) if newline < 0 else newline + 1

    def _line_start(self, place: int) -> int:
        return self.text.rfind("\n", 0, place) + 1


def _covers(parts: Sequence[Part], start: int, end: int) -> Iterator[tuple[int, int]]:
    """Runs of neighbouring parts that cover a stretch, each within a part of the one before."""
    depth, low, high = 0, 0, 1 << 62
    while True:
        run = [
            part for part in parts
            if part.depth == depth and low <= part.start <= end and start <= part.end <= high
        ]  # fmt: skip
        if len(run) > 1 and start < end:  # touching does not count where something covers
            run = [part for part in run if part.start < end and part.end > start] or run
        if not run or run[0].start > start or run[-1].end < end:
            return
        yield run[0].start, run[-1].end
        if len(run) > 1:
            return
        depth, low, high = depth + 1, run[0].start, run[0].end


def _line_starts(text: str) -> Iterator[int]:
    place = text.find("\n")
    while place >= 0:
        yield place + 1
        place = text.find("\n", place + 1)

"""Fences: the lines of backticks or tildes around a block of text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^`]*)")


def fence_for(text: str, minimum: int = 3) -> str:
    """A fence of backticks longer than any run of them in the text."""
    return "`" * max(minimum, 1 + max(map(len, re.findall("`+", text)), default=0))


@dataclass(frozen=True, slots=True)
class Fence:
    """A line that opens or closes a fenced block.

    Attributes:
        mark: three or more backticks or tildes.
        bare: nothing stands behind the mark.
    """

    mark: str
    bare: bool = True

    @classmethod
    def of(cls, line: str) -> Fence | None:
        """The fence that a line is, by the rules of CommonMark."""
        found = _FENCE.fullmatch(line)
        return cls(found[1], not found[2].strip()) if found else None

    def closes(self, opening: Fence) -> bool:
        """Whether this line ends a block that the other begins: same letter, as long or longer, and bare."""
        return self.bare and self.mark.startswith(opening.mark)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block in a text.

    Attributes:
        line: where the line that opens it begins.
        start: where its contents begin.
        end: where they end, with their last line break: where the closing line begins.
        closing: that line without white space around it; ``""`` if the block is open.
    """

    line: int
    start: int
    end: int
    closing: str


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a text, in order; only the last one may be open at the end."""
    lines = text.split("\n")
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    starts[-1] = len(text)
    n = 0
    while n < len(lines):
        fence = Fence.of(lines[n])
        if fence is not None:
            first, n = n, next(closings(lines, n + 1, Fence(fence.mark)), len(lines))
            closing = lines[n].strip() if n < len(lines) else ""
            yield Block(starts[first], starts[first + 1], starts[n], closing)
        n += 1


def closings(lines: Sequence[str], start: int, outer: Fence) -> Iterator[int]:
    """Lines that may close a block whose contents begin at ``start``.

    Shorter fences, or of the other letter, are contents. One as long as the outer may open an inner block:
    models nest them so, although CommonMark does not.
    """
    inner: Fence | None = None
    for n in range(start, len(lines)):
        fence = Fence.of(lines[n])
        if fence is None or not fence.mark.startswith(outer.mark):
            continue
        if inner is not None:
            inner = None if fence.closes(inner) else inner
        elif fence.bare:
            yield n
        else:
            inner = fence


def is_settled(lines: Sequence[str]) -> bool:
    """Whether every block of backticks is closed at the end, by the rules of CommonMark."""
    inner: Fence | None = None
    for fence in filter(None, map(Fence.of, lines)):
        if inner is not None:
            inner = None if fence.closes(inner) else inner
        elif fence.mark.startswith("`"):
            inner = fence
    return inner is None

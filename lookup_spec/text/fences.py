"""Fences: the lines of backticks or tildes around a block of text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

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


def closings(lines: Sequence[str], start: int, outer: Fence) -> list[int]:
    """Lines that may close a block whose contents begin at ``start``.

    Shorter fences, or of the other letter, are contents. One as long as the outer may open an inner block:
    models nest them so, although CommonMark does not.
    """
    found: list[int] = []
    inner: Fence | None = None
    for n in range(start, len(lines)):
        fence = Fence.of(lines[n])
        if fence is None or not fence.mark.startswith(outer.mark):
            continue
        if inner is not None:
            inner = None if fence.closes(inner) else inner
        elif fence.bare:
            found.append(n)
        else:
            inner = fence
    return found


def is_settled(lines: Sequence[str]) -> bool:
    """Whether every block of backticks is closed at the end, by the rules of CommonMark."""
    inner: Fence | None = None
    for fence in filter(None, map(Fence.of, lines)):
        if inner is not None:
            inner = None if fence.closes(inner) else inner
        elif fence.mark.startswith("`"):
            inner = fence
    return inner is None

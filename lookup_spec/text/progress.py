"""How far through a file a streaming rewrite has come."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict

_REACH = 60  # lines; a same line further on is more likely a coincidence than a long deletion


class LineProgress:
    """Follows a rewritten file line by line through the base it came from.

    Args:
        base: the file before (LF line ends).

    Attributes:
        line: base lines passed so far.
        lines: base lines in all.
    """

    def __init__(self, base: str) -> None:
        self._places: dict[str, list[int]] = defaultdict(list)
        lines = base.splitlines()
        for number, line in enumerate(lines):
            self._places[line].append(number)
        self._rest = ""
        self.lines = len(lines)
        self.line = 0

    def push(self, text: str) -> int:
        """Takes in more of the rewritten file; returns :attr:`line`."""
        *complete, self._rest = (self._rest + text).split("\n")
        for line in complete:
            places = self._places.get(line, [])
            following = bisect_right(places, self.line - 1)
            if following < len(places) and places[following] - self.line <= _REACH:
                self.line = places[following] + 1
        return self.line

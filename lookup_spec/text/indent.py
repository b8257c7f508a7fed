"""The end of a block in a stream: the first line that is less indented than it should be."""

from __future__ import annotations

import re

# A line end, blank lines, and the indentation of the next line that is not blank.
_LINE = re.compile(r"\r?\n(?:[ \t]*\r?\n)*([ \t]*)")


class IndentGuard:
    """Passes text through up to the first new line with too little indentation.

    The line that the text begins in is not looked at, and blank lines have no indentation. The text comes in pieces
    of any size; what comes out does not depend on how it was cut. Held back is only a line end and what may yet be
    the next line's indentation.

    Args:
        least: letters of indentation (spaces or tabs); 0 lets everything through.

    Attributes:
        ended: whether such a line has come. That line, and the line end before it, are not part of the text.
    """

    def __init__(self, least: int) -> None:
        self.ended = False
        self._least = least
        self._held = ""

    def push(self, text: str) -> str:
        """The text that is now certain."""
        if self.ended:
            return ""
        if not self._least:
            return text
        text, self._held = self._held + text, ""
        for found in _LINE.finditer(text):
            if text[found.end() :] in ("", "\r"):
                return self._hold(text, found.start())
            if len(found[1]) < self._least:
                self.ended = True
                return text[: found.start()]
        return self._hold(text, len(text) - text.endswith("\r"))

    def flush(self) -> str:
        """The text held back, when the answer ended otherwise."""
        held, self._held = self._held, ""
        return held

    def _hold(self, text: str, start: int) -> str:
        self._held = text[start:]
        return text[:start]

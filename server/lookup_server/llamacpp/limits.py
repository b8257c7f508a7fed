"""What ends an answer in llama.cpp's API besides its tokens and stop strings: indentation and time."""

from __future__ import annotations

from dataclasses import replace

from lookup_spec.engine.session import Piece
from lookup_spec.text.indent import IndentGuard


def warmed_up(piece: Piece) -> Piece:
    """Ends an answer before its first token, which it took to get all of the prompt computed."""
    return replace(
        piece,
        text="",
        token_ids=(),
        sources=(),
        stats=replace(piece.stats, completion_tokens=0),
        finish_reason="length",
        stop=None,
    )


class Limits:
    """Looks at one answer's pieces on their way, and ends it where it has gone far enough.

    Args:
        indent: a new line with fewer letters of indentation ends the answer, and is not part of it.
        milliseconds: once the answer has taken so long, from its first token on, it ends with the line it is in;
            0 or less for no limit.
    """

    def __init__(self, indent: int, milliseconds: int) -> None:
        self._guard = IndentGuard(indent)
        self._seconds = milliseconds / 1000

    def __call__(self, piece: Piece) -> Piece:
        """The piece, or the part of it that belongs to the answer."""
        if (
            piece.finish_reason == "cancelled"
        ):  # its prompt took too long; if nobody listens any more, it does not matter
            return replace(piece, text=piece.text + self._guard.flush(), finish_reason="length")
        text = self._guard.push(piece.text)
        late = 0 < self._seconds < piece.stats.decode_seconds
        if self._guard.ended or (late and "\n" in text):
            if late:
                text = text.partition("\n")[0]
            return replace(piece, text=text, finish_reason="length", stop=None)
        return replace(piece, text=text + (self._guard.flush() if piece.finish_reason else ""))

"""What tokens end with: how much of a line, a word, a space is over tells what may come next."""

from __future__ import annotations

from enum import IntEnum

from lookup_spec.propose.retokenizer import Retokenizer


class Ending(IntEnum):
    """What a token's text ends with, spaces and tabs at its end left out."""

    WORD = 0
    """A letter, a digit or an underscore; also what is not known."""
    LINE = 1
    """A line break."""
    SPACE = 2
    """Nothing else stands in it."""
    MARK = 3
    """Any other character."""


class Endings(dict[int, Ending]):
    """The endings of tokens, each found when it is asked for first.

    Args:
        retokenizer: knows the tokens' texts; None knows nothing about any.
    """

    def __init__(self, retokenizer: Retokenizer | None) -> None:
        super().__init__()
        self._retokenizer = retokenizer

    def __missing__(self, token: int) -> Ending:
        ending = Ending.WORD if self._retokenizer is None else _ending(self._retokenizer.pieces([token])[0])
        self[token] = ending
        return ending


def _ending(piece: str) -> Ending:
    shown = piece.rstrip(" \t")
    if shown.endswith("\n"):
        return Ending.LINE
    if not shown:
        return Ending.SPACE
    return Ending.WORD if shown[-1].isalnum() or shown[-1] == "_" else Ending.MARK

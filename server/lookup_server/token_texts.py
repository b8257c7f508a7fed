"""The text of each single token of an answer, as it streams out."""

from __future__ import annotations

from collections import deque

from lookup_spec.engine.session import Piece
from lookup_spec.text.detokenize import Detokenizer, Vocabulary


class TokenTexts:
    """Splits an answer's text into that of its tokens.

    A character that several tokens make up counts as the last one's.

    Args:
        vocabulary: of the model.
        continuing: the answer goes on in the middle of the prompt's text.
    """

    def __init__(self, vocabulary: Vocabulary, *, continuing: bool) -> None:
        self._text = Detokenizer(vocabulary, continuing=continuing)
        self._held: deque[tuple[str, str]] = deque()

    def take(self, piece: Piece) -> list[tuple[str, str]]:
        """Text and source of the tokens that a piece's text is made of; joined, the texts are the piece's."""
        for token, source in zip(piece.token_ids, piece.sources, strict=True):
            self._held.append((self._text.push(token), source))
        taken: list[tuple[str, str]] = []
        rest = piece.text
        while rest:
            # What no token accounts for is the replacement of an unfinished last character.
            text, source = self._held.popleft() if self._held else (rest, "")
            if len(text) > len(rest):
                self._held.appendleft((text[len(rest) :], source))
            text, rest = text[: len(rest)], rest[len(text) :]
            taken.append((text, source))
        return taken

"""How an edit's answer came about: each forward pass with its tokens and what proposed them."""

from __future__ import annotations

from typing import Any

from lookup_server.token_texts import TokenTexts
from lookup_spec.engine.session import Piece
from lookup_spec.stats import Stats
from lookup_spec.text.detokenize import Vocabulary


class Trace:
    """Tells forward passes from the pieces of an answer.

    Args:
        vocabulary: of the model.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._tokens = TokenTexts(vocabulary, continuing=True)
        self._before = Stats()

    def take(self, piece: Piece) -> dict[str, Any] | None:
        """What the pass that brought a piece did; None if there was no pass since the last piece."""
        before, now = self._before, piece.stats
        tokens = [{"text": text, "source": source} for text, source in self._tokens.take(piece)]
        if now.forward_passes == before.forward_passes and not tokens:
            return None
        self._before = now
        return {
            "step": now.forward_passes,
            "tokens": tokens,
            "drafted": now.drafted - before.drafted,
            "accepted": now.accepted - before.accepted,
            "seconds": round(now.decode_seconds, 6),
        }

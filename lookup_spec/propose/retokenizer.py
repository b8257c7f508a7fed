"""The seam to the tokenizer, which stays outside of the token lane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Retokenizer(Protocol):
    """What the token lane must be told about text."""

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The text of each token; joined, the text of all."""

    def encode(self, text: str) -> list[int]:
        """The tokens of a text that stands inside a document."""

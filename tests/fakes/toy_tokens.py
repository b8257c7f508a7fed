"""A tokenizer of words, for tests of the token lane."""

from __future__ import annotations

import re
from collections.abc import Sequence


class ToyTokens:
    """Tokens are words with the space before them, runs of spaces before such a word, and single other characters; ids
    are given as they come."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}

    def encode(self, text: str) -> list[int]:
        return [self._ids.setdefault(piece, len(self._ids)) for piece in re.findall(r" ?\w+| +(?= )|.|\n", text)]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        texts = list(self._ids)
        return [texts[token] for token in ids]

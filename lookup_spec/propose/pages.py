"""The text of a token sequence, put together a page at a time where it is looked at."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from lookup_spec.propose.retokenizer import Retokenizer

PAGE = 128
"""Tokens on a page, more or less: pages end with lines."""

_LINE = 16
"""Tokens in a line, usually."""


class Page(NamedTuple):
    """Some lines.

    Attributes:
        start: place of the first token.
        end: place behind the last one.
        text: of all of them.
        edges: where in ``text`` each token begins, and the end of ``text``.
    """

    start: int
    end: int
    text: str
    edges: list[int]

    def token(self, char: int) -> int:
        """Number on the page of the token that holds a character."""
        return bisect_right(self.edges, char) - 1

    def line(self, place: int) -> tuple[str, str]:
        """The line before and behind a place."""
        text, edge = self.text, self.edges[place - self.start]
        return text[text.rfind("\n", 0, edge) + 1 : edge], text[edge:].partition("\n")[0]


class Pages:
    """The pages of ``ids[low:high]``.

    Args:
        ids: what the text is part of.
        low: where it begins.
        high: where it ends.
        retokenizer: knows the tokenizer.
    """

    def __init__(self, ids: Sequence[int], low: int, high: int, retokenizer: Retokenizer) -> None:
        self._ids, self._low, self._high = ids, low, high
        self._pieces = retokenizer.pieces
        self._known: dict[int, Page] = {}

    def at(self, place: int) -> Page | None:
        """The page that holds the token at ``place``, or None outside the text."""
        if not self._low <= place < self._high:
            return None
        number = (place - self._low) // PAGE
        page = self._page(number)
        return page if page.start <= place else self._page(number - 1)

    def _page(self, number: int) -> Page:
        page = self._known.get(number)
        if page is None:
            start, end = self._cut(number), self._cut(number + 1)
            pieces = self._pieces(self._ids[start:end])
            page = self._known[number] = Page(start, end, "".join(pieces), [0, *accumulate(map(len, pieces))])
        return page

    def _cut(self, number: int) -> int:
        """Where a page begins: with the first line that begins a multiple of ``PAGE`` tokens after the text's beginning
        or behind that; if there is none on a whole page, with the token."""
        first = self._low + number * PAGE
        if number == 0 or first >= self._high:
            return min(first, self._high)
        last = min(first + PAGE, self._high)
        for start in range(first, last, _LINE):
            pieces = self._pieces(self._ids[start - 1 : min(start + _LINE, last) - 1])
            for place, piece in enumerate(pieces, start):
                if piece.endswith("\n"):
                    return place
        return last

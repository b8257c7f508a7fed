"""A text as words and their shapes: names are alike, numbers are alike, all else is itself."""

from __future__ import annotations

import re
import sys
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

from lookup_spec.propose.segment import Segment

_WORD = re.compile(r"[^\W\d]\w*|\d\w*|\n\s*|[^\S\n]+|.", re.DOTALL)

NAME, NUMBER, LINE, SPACE = range(4)
"""Shapes of words: a name or keyword, a number, a line end with the indentation behind it, other space."""

_OTHER = 4


class Shaped:
    """Words of a text, shapes of the words, and where they stand.

    Words are found without knowledge of the language: runs of letters, digits and underscores, of space, and
    other characters one by one.

    Attributes:
        words: joined, the text.
        shapes: one a word.
    """

    __slots__ = ("_shape_of", "_starts", "_token_starts", "shapes", "words")

    def __init__(self, pieces: Sequence[str] = ()) -> None:
        self.words: list[str] = []
        self.shapes: list[int] = []
        self._starts = array("i")
        self._token_starts = array("i", [0])
        self._shape_of: dict[str, int] = {}
        self.extend(pieces)

    def __len__(self) -> int:
        return len(self.words)

    def extend(self, pieces: Sequence[str]) -> None:
        """Takes in the pieces of the tokens that come next; the last word may become longer."""
        if not pieces:
            return
        end = self._token_starts[-1]
        self._token_starts.extend(list(accumulate(map(len, pieces), initial=end))[1:])
        start, rest = (self._starts.pop(), self.words.pop()) if self.words else (end, "")
        del self.shapes[len(self.words) :]
        words = _WORD.findall(rest + "".join(pieces))
        shape_of = self._shape_of
        for word in set(words).difference(shape_of):
            shape_of[word] = _shape(word)
        self.words += words
        self.shapes += [shape_of[word] for word in words]
        self._starts.extend(list(accumulate(map(len, words), initial=start))[:-1])

    def seam(self, start: int, end: int) -> tuple[int, int]:
        """The first of the words ``start:end`` with which a token begins, and that token; the ends of the text if there
        is none."""
        starts, token_starts = self._starts, self._token_starts
        for word in range(start, min(end, len(starts))):
            token = bisect_left(token_starts, starts[word])
            if token_starts[token] == starts[word]:
                return word, token
        return len(starts), len(token_starts) - 1

    def word(self, token: int) -> int:
        """The first word that begins with a token or later."""
        return bisect_left(self._starts, self._token_starts[token])


def _shape(word: str) -> int:
    first = word[0]
    if first.isalpha() or first == "_":
        return NAME
    if first.isdigit():
        return NUMBER
    if first == "\n":
        return LINE
    return SPACE if first.isspace() else _OTHER + ord(first)


class ShapedSegment(Shaped):
    """A text that never changes, with an index of its shapes. Safe to share between threads.

    Attributes:
        index: of the shapes.
        nbytes: memory it takes.
    """

    __slots__ = ("index", "nbytes")

    def __init__(self, pieces: Sequence[str]) -> None:
        super().__init__(pieces)
        self.index = Segment(self.shapes)
        words = sum(map(sys.getsizeof, self._shape_of))
        parts = (self, self.words, self.shapes, self._starts, self._token_starts, self._shape_of)
        self.nbytes = sum(map(sys.getsizeof, parts)) + words + self.index.nbytes

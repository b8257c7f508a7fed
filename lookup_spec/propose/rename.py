"""Names that change throughout a text: noticed, announced, and applied to what is still to come."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

_ANNOUNCED = re.compile(r"[`'\"]?\b(\w+)\b[`'\"]?\s+(?:to|into|as|with|by|->|=>|→)\s+[`'\"]?(\w+)\b")
_NAME = re.compile(r"[^\W\d]\w*")


class Retokenizer(Protocol):
    """What the token lane must be told about text: the tokenizer stays outside."""

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The text of each token; joined, the text of all."""

    def encode(self, text: str) -> list[int]:
        """The tokens of a text that stands inside a document."""


@dataclass(frozen=True, slots=True)
class Rename:
    """One name that became another."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Fork:
    """A place in a rewritten text where the original goes on differently.

    Attributes:
        rename: what was applied there.
        original: the place in the original.
    """

    rename: Rename
    original: int


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A text with names changed, token for token as the tokenizer would give it.

    Attributes:
        ids: the tokens.
        places: for each place in the original, and its end, the corresponding one in ``ids``.
        forks: by place in ``ids``.
    """

    ids: list[int]
    places: list[int]
    forks: dict[int, Fork]

    @classmethod
    def unchanged(cls, ids: Sequence[int]) -> Rewritten:
        """The text as it is."""
        return cls(list(ids), list(range(len(ids) + 1)), {})

    def original(self, place: int) -> int:
        """The last place of the original that corresponds to ``place``, or to one before it."""
        return bisect_right(self.places, place) - 1

    def between(self, around: Sequence[int], low: int, high: int) -> Rewritten:
        """The same in its place: this was ``around[low:high]``."""
        shift = low + len(self.ids) - high
        return Rewritten(
            [*around[:low], *self.ids, *around[high:]],
            [
                *range(low),
                *(low + place for place in self.places[:-1]),
                *range(high + shift, len(around) + shift + 1),
            ],
            {low + place: Fork(fork.rename, low + fork.original) for place, fork in self.forks.items()},
        )


def announced(message: str) -> list[Rename]:
    """Renames that a message may ask for: "rename X to Y", "replace X with Y", "X -> Y"."""
    pairs = dict.fromkeys(_ANNOUNCED.findall(message))
    return [Rename(old, new) for old, new in pairs if old != new and _NAME.fullmatch(old) and _NAME.fullmatch(new)]


def noticed(before: str, after: str) -> Rename | None:
    """The one name in which two texts differ, or None if they differ in anything else.

    Args:
        before: a stretch of the base, with some text on both sides of the difference.
        after: the corresponding stretch of the answer.
    """
    head = _common(before, after)
    tail = _common(before[head:][::-1], after[head:][::-1])
    while head and _in_word(before[head - 1]):
        head -= 1
    while tail and _in_word(before[-tail]):
        tail -= 1
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    # Without text behind the name, more of it may be to come.
    if tail and old != new and _NAME.fullmatch(old) and _NAME.fullmatch(new):
        return Rename(old, new)
    return None


def _common(one: str, other: str) -> int:
    length = 0
    for left, right in zip(one, other):  # noqa: B905 - the shorter one decides
        if left != right:
            break
        length += 1
    return length


def _in_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def rewrite(
    ids: Sequence[int], pieces: Sequence[str], renames: Sequence[Rename], retokenizer: Retokenizer
) -> Rewritten:
    """Applies renames to whole names, line by line.

    A line is encoded anew only if encoding it unchanged gives the tokens it has; otherwise its tokens depend
    on its neighbours, and it stays as it is.

    Args:
        ids: the original tokens.
        pieces: the text of each.
        renames: at least one; no two of the same old name.
        retokenizer: knows the tokenizer.
    """
    return _Rewriting(ids, pieces, renames, retokenizer).run()


class _Rewriting:
    def __init__(
        self, ids: Sequence[int], pieces: Sequence[str], renames: Sequence[Rename], retokenizer: Retokenizer
    ) -> None:
        self._ids, self._pieces, self._retokenizer = ids, pieces, retokenizer
        self._renames = {rename.old: rename for rename in renames}
        names = "|".join(re.escape(name) for name in self._renames)
        self._pattern = re.compile(rf"(?<!\w)(?:{names})(?!\w)")
        self._starts = [0, *accumulate(map(len, pieces))]
        self._result = Rewritten([], [], {})

    def run(self) -> Rewritten:
        text = "".join(self._pieces)
        done = 0
        for match in self._pattern.finditer(text):
            first, last = self._line(match.start())
            if first < done:
                continue
            self._copy(first)
            line = text[self._starts[first] : self._starts[last]]
            if self._retokenizer.encode(line) == list(self._ids[first:last]):
                self._change(first, last, line)
            else:
                self._copy(last)
            done = last
        self._copy(len(self._ids))
        self._result.places.append(len(self._result.ids))
        return self._result

    def _line(self, hit: int) -> tuple[int, int]:
        """The token range around a character: from after a token that ends a line to the next such token."""
        first = last = bisect_right(self._starts, hit) - 1
        while first and not self._pieces[first - 1].endswith("\n"):
            first -= 1
        while last < len(self._pieces) and not self._pieces[last].endswith("\n"):
            last += 1
        return first, min(last + 1, len(self._pieces))

    def _copy(self, end: int) -> None:
        ids, places = self._result.ids, self._result.places
        start = len(places)
        places.extend(range(len(ids), len(ids) + end - start))
        ids.extend(self._ids[start:end])

    def _change(self, first: int, last: int, line: str) -> None:
        hits = list(self._pattern.finditer(line))
        new = self._retokenizer.encode(self._pattern.sub(lambda match: self._renames[match[0]].new, line))
        new_starts = [0, *accumulate(map(len, self._retokenizer.pieces(new)))]
        offset = len(self._result.ids)
        # Characters of the line before and after the change, at the edges of every name.
        old_edges, new_edges = [0], [0]
        for hit in hits:
            new_edges.append(new_edges[-1] + hit.start() - old_edges[-1])
            new_edges.append(new_edges[-1] + len(self._renames[hit[0]].new))
            old_edges += hit.span()
        for hit, char in zip(hits, new_edges[1::2]):  # noqa: B905 - the last edge is the last name's end
            old_token = bisect_right(self._starts, self._starts[first] + hit.start()) - 1
            new_token = bisect_right(new_starts, char) - 1
            while old_token < last and new_token < len(new) and self._ids[old_token] == new[new_token]:
                old_token, new_token = old_token + 1, new_token + 1
            if old_token < last and new_token < len(new):
                self._result.forks[offset + new_token] = Fork(self._renames[hit[0]], old_token)
        for token in range(first, last):
            char = self._starts[token] - self._starts[first]
            edge = bisect_right(old_edges, char) - 1
            moved = new_edges[edge] + char - old_edges[edge]
            if edge + 1 < len(new_edges):
                moved = min(moved, new_edges[edge + 1])
            self._result.places.append(offset + bisect_left(new_starts, moved, 0, len(new)))
        self._result.ids.extend(new)

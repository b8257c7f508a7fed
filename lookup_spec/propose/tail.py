"""The growing end of the text: the request's own answer, indexed as it comes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from lookup_spec.propose.segment import TOKEN_BITS


class Tail:
    """An incremental index of the pairs and single tokens of a growing sequence.

    As in LZ77, each place points back to the previous place with the same last token, and another chain does
    the same for the last two tokens. Appending costs two dictionary writes a token; looking up follows the
    chains for as many places as the caller wants, most recent first. A pair is kept as one number: a tuple would
    take twice the time and the memory.
    """

    __slots__ = ("_ids", "_last", "_last_pair", "_previous", "_previous_pair")

    def __init__(self) -> None:
        self._ids: list[int] = []
        self._last: dict[int, int] = {}
        self._last_pair: dict[int, int] = {}
        self._previous: list[int] = []  # per token: the place before with this token, or -1
        self._previous_pair: list[int] = []

    def __len__(self) -> int:
        return len(self._ids)

    def extend(self, ids: Sequence[int]) -> None:
        """Takes in the tokens that come next."""
        before = self._ids[-1] if self._ids else -1
        place = len(self._ids)
        last, pairs = self._last, self._last_pair
        previous, previous_pair = self._previous, self._previous_pair
        for token in ids:
            previous.append(last.get(token, -1))
            last[token] = place
            pair = before << TOKEN_BITS | token
            previous_pair.append(pairs.get(pair, -1))
            pairs[pair] = place
            before = token
            place += 1
        self._ids.extend(ids)

    def places(self) -> Iterator[int]:
        """Earlier places with the last token, most recent first; each the index of the token that follows."""
        return self._follow(self._previous)

    def pair_places(self) -> Iterator[int]:
        """The same for the last two tokens."""
        return self._follow(self._previous_pair)

    def _follow(self, chain: list[int]) -> Iterator[int]:
        if not chain:
            return
        place = chain[-1]
        while place >= 0:
            yield place + 1
            place = chain[place]


def first(places: Iterator[int], count: int) -> list[int]:
    """At most ``count`` of them."""
    return list(islice(places, count))

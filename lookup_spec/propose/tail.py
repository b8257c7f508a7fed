"""The growing end of the text: the request's own answer, indexed as it comes."""

from __future__ import annotations

from collections.abc import Sequence


class Tail:
    """An incremental index of a growing sequence.

    As in LZ77, each place points back to the previous place with the same last token. Appending costs one dictionary
    write a token; looking up follows the chain as far as the caller wants, most recent first. Longer n-grams need no
    chains of their own: their places are among the places of their last token, and the recent ones are worth most.
    """

    __slots__ = ("_ids", "_last", "_previous")

    def __init__(self) -> None:
        self._ids: list[int] = []
        self._last: dict[int, int] = {}
        self._previous: list[int] = []  # per token: the place before with this token, or -1

    def __len__(self) -> int:
        return len(self._ids)

    def extend(self, ids: Sequence[int]) -> None:
        """Takes in the tokens that come next."""
        place = len(self._ids)
        last, previous = self._last, self._previous
        for token in ids:
            previous.append(last.get(token, -1))
            last[token] = place
            place += 1
        self._ids.extend(ids)

    def places(self, most: int) -> list[int]:
        """Earlier places with the last token, at most so many, most recent first; each the index of the token that
        follows."""
        found: list[int] = []
        if self._ids:
            previous, place = self._previous, self._previous[-1]
            while place >= 0 and len(found) < most:
                found.append(place + 1)
                place = previous[place]
        return found

    def of_pair(self, places: Sequence[int]) -> list[int]:
        """Those of the places before which the last two tokens stand."""
        ids = self._ids
        if len(ids) < 2:
            return []
        before = ids[-2]
        return [place for place in places if place > 1 and ids[place - 2] == before]

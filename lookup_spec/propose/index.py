"""All places where the latest tokens stood before, in the prompt and in the answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

from lookup_spec.propose.base import Base
from lookup_spec.propose.guess import Guess, Kind, matched
from lookup_spec.propose.segment import MAX_NGRAM, Match, Search, Segment
from lookup_spec.propose.tail import Tail, first

_BEFORE, _AFTER = 8, 16
_BEHIND_ANCHOR = 2
_MANY = 32
_ELSEWHERE = 12
_ANSWER = 8
_ENOUGH = 16
_SHARES = (0.1, 0.2, 0.35, 0.5, 0.75, 0.999)


class _Place(NamedTuple):
    kind: Kind
    text: Sequence[int]
    place: int


class Index:
    """Finds matches of the latest tokens.

    Args:
        known: the text so far, prompt and answer; it grows, and this object only reads it.
        base: what the answer is expected to follow.
        base_segment: the base's index, if it has one.
        base_offset: where in the base's text that segment begins.
    """

    def __init__(self, known: list[int], base: Base, base_segment: Segment, base_offset: int) -> None:
        self._known, self._base = known, base
        self._base_search, self._base_offset = base_segment.search(), base_offset
        self._others = list[tuple[Sequence[int], int, Search]]()
        self._tail, self._answer_start = Tail(), len(known)
        self._seen = max(0, len(known) - MAX_NGRAM)

    def add(self, text: Sequence[int], offset: int, segment: Segment) -> None:
        """Also looks in ``segment``, which is ``text`` from ``offset`` on."""
        self._others.append((text, offset, segment.search()))

    def guesses(self, taken: Collection[int]) -> list[Guess]:
        """Where the text may go on because the latest tokens stand before, the longest matches first.

        Several guesses may be of the same token.

        Args:
            taken: places in the base that are guessed anyway; they are left out.
        """
        self._catch_up()
        levels: dict[int, list[_Place]] = {}
        self._in_base(levels, taken)
        self._elsewhere(levels)
        self._in_answer(levels)
        return _most_likely(levels)

    def _catch_up(self) -> None:
        known = self._known
        new = known[self._seen :]
        for search in (self._base_search, *(search for _, _, search in self._others)):
            search.feed(new)
        self._tail.extend(known[self._answer_start + len(self._tail) :])
        self._seen = len(known)

    def _in_base(self, levels: dict[int, list[_Place]], taken: Collection[int]) -> None:
        base, offset, known = self._base, self._base_offset, self._known
        ids, end = base.ids, len(base.ids)
        pivots = [pivot - offset for pivot in base.pivots()]
        found = 0
        for number, match in enumerate(self._base_search.matches()):
            for original in _near(match, pivots):
                place = base.place(original + offset)
                if place < end and place not in taken:
                    length = match.length if number else matched(known, ids, place)
                    levels.setdefault(length, []).append(_Place(base.kind(place), ids, place))
                    found += 1
            if found >= _MANY:
                break

    def _elsewhere(self, levels: dict[int, list[_Place]]) -> None:
        for text, offset, search in self._others:
            for number, match in enumerate(search.matches()):
                for place in match.latest(_ELSEWHERE):
                    place += offset  # noqa: PLW2901 - the same place, in the whole text
                    length = match.length if number else matched(self._known, text, place)
                    levels.setdefault(length, []).append(_Place(Kind.ELSEWHERE, text, place))

    def _in_answer(self, levels: dict[int, list[_Place]]) -> None:
        known, tail = self._known, self._tail
        for place in dict.fromkeys((*first(tail.pair_places(), _ANSWER), *first(tail.places(), _ANSWER))):
            place += self._answer_start  # noqa: PLW2901 - the same place, in the whole text
            levels.setdefault(matched(known, known, place), []).append(_Place(Kind.ANSWER, known, place))


def _near(match: Match, pivots: Sequence[int]) -> Sequence[int]:
    """All places of a match, or, if there are many, those near the first pivot and a few behind each other one."""
    if match.end - match.start <= _BEFORE + _AFTER:
        return match.positions[match.start : match.end]
    found = set(match.around(pivots[0], _BEFORE, _AFTER))
    for pivot in pivots[1:]:
        found.update(match.around(pivot, 0, _BEHIND_ANCHOR))
    return sorted(found)


def _most_likely(levels: dict[int, list[_Place]]) -> list[Guess]:
    found: list[Guess] = []
    tokens: set[int] = set()
    for length in sorted(levels, reverse=True):
        places = levels[length]
        counts = Counter([text[place] for _, text, place in places])
        shares = {token: _share(count, len(places)) for token, count in counts.items()}
        # Guesses of one token, kind and length are equally likely: the first is enough.
        distinct = {(text[place], kind): (kind, text, place) for kind, text, place in reversed(places)}
        found += [
            Guess(kind, text, place, length, shares[token]) for (token, _), (kind, text, place) in distinct.items()
        ]
        tokens.update(counts)
        if len(tokens) >= _ENOUGH:
            break
    return found


def _share(count: int, of: int) -> int:
    """Bucket of the share that one token has among the places of one matched length."""
    if of <= 3:
        return 7 if of == 1 else 7 + count
    share = count / of
    return next((bucket for bucket, most in enumerate(_SHARES) if share < most), len(_SHARES))

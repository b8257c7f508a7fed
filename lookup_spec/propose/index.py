"""All places where the latest tokens stood before, in the prompt and in the answer."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from lookup_spec.propose.base import Base
from lookup_spec.propose.guess import Guess, Kind, matched
from lookup_spec.propose.segment import Match, Segment
from lookup_spec.propose.tail import Tail

_BEFORE, _AFTER = 2, 10
_BEHIND_ANCHOR = 2
_MANY = 12
_ELSEWHERE = 3
_MANY_ELSEWHERE = 8
_ANSWER = 5
_LOOKED_BACK = 32
_ENOUGH = 7
_SHARES = (0.1, 0.2, 0.35, 0.5, 0.75, 0.999)

_Places = list[tuple[Kind, Sequence[int], int]]
"""Places of one matched length: what each is to the base's cursor, the text it is in, and where."""


class Index:
    """Finds matches of the latest tokens.

    Args:
        known: the text so far, prompt and answer; it grows, and this object only reads it.
        base: what the answer is expected to follow.
        base_segment: the base's index.
    """

    def __init__(self, known: list[int], base: Base, base_segment: Segment) -> None:
        self._known, self._base = known, base
        self._base_segment = base_segment
        self._others = list[tuple[Sequence[int], int, Segment]]()
        self._tail, self._answer_start = Tail(), len(known)

    def add(self, text: Sequence[int], offset: int, segment: Segment) -> None:
        """Also looks in ``segment``, which is ``text`` from ``offset`` on."""
        self._others.append((text, offset, segment))

    def extend(self, ids: Sequence[int]) -> None:
        """Takes in how the answer goes on; ``known`` holds it, too."""
        self._tail.extend(ids)

    def guesses(self, taken: Collection[int]) -> list[Guess]:
        """Where the text may go on because the latest tokens stand before, the longest matches first.

        Several guesses may be of the same token.

        Args:
            taken: places in the base that are guessed anyway; they are left out.
        """
        levels: defaultdict[int, _Places] = defaultdict(list)
        self._in_base(levels, taken)
        self._elsewhere(levels)
        self._in_answer(levels)
        return _most_likely(levels)

    def _in_base(self, levels: defaultdict[int, _Places], taken: Collection[int]) -> None:
        base, known = self._base, self._known
        ids, end, pivots = base.ids, len(base.ids), base.pivots()
        found = 0
        for number, match in enumerate(self._base_segment.matches(known)):
            places = [place for place in _near(match, pivots) if place < end and place not in taken]
            if number == 0 and match.may_extend:
                for kind, place in base.kinds(places):
                    levels[matched(known, ids, place)].append((kind, ids, place))
            else:
                levels[match.length] += [(kind, ids, place) for kind, place in base.kinds(places)]
            found += len(places)
            if found >= _MANY:
                break

    def _elsewhere(self, levels: defaultdict[int, _Places]) -> None:
        known, kind = self._known, Kind.ELSEWHERE
        matches = [
            (match, number == 0, text, offset)
            for text, offset, segment in self._others
            for number, match in enumerate(segment.matches(known))
        ]
        matches.sort(key=_length, reverse=True)
        found = 0
        for match, longest, text, offset in matches:
            places = [place + offset for place in match.latest(_ELSEWHERE)]
            for place in places:
                length = matched(known, text, place) if longest else match.length
                levels[length].append((kind, text, place))
            found += len(places)
            if found >= _MANY_ELSEWHERE:
                break

    def _in_answer(self, levels: defaultdict[int, _Places]) -> None:
        known, tail, kind = self._known, self._tail, Kind.ANSWER
        places = tail.places(_LOOKED_BACK)
        for place in dict.fromkeys((*tail.of_pair(places)[:_ANSWER], *places[:_ANSWER])):
            place += self._answer_start  # noqa: PLW2901 - the same place, in the whole text
            levels[matched(known, known, place)].append((kind, known, place))


def _length(found: tuple[Match, bool, Sequence[int], int]) -> int:
    return found[0].length


def _near(match: Match, pivots: Sequence[int]) -> Sequence[int]:
    """All places of a match, or, if there are many, those near the first pivot and a few behind each other one."""
    if match.end - match.start <= _BEFORE + _AFTER:
        return match.positions[match.start : match.end]
    found = set(match.around(pivots[0], _BEFORE, _AFTER))
    for pivot in pivots[1:]:
        found.update(match.around(pivot, 0, _BEHIND_ANCHOR))
    return sorted(found)


def _most_likely(levels: Mapping[int, _Places]) -> list[Guess]:
    found: list[Guess] = []
    tokens: set[int] = set()
    for length in sorted(levels, reverse=True):
        places = levels[length]
        counts: dict[int, int] = {}
        distinct: dict[tuple[int, Kind], tuple[Sequence[int], int]] = {}
        for kind, text, place in places:
            token = text[place]
            counts[token] = counts.get(token, 0) + 1
            # Guesses of one token, kind and length are equally likely: the first is enough.
            distinct.setdefault((token, kind), (text, place))
        shares = {token: _share(count, len(places)) for token, count in counts.items()}
        found += [Guess(kind, *where, length, shares[token]) for (token, kind), where in distinct.items()]
        tokens.update(counts)
        if len(tokens) >= _ENOUGH:
            break
    return found


def _share(count: int, of: int) -> int:
    """Bucket of the share that one token has among the places of one matched length."""
    if of <= 3:
        return 7 if of == 1 else 7 + count
    share = count / of
    return bisect_right(_SHARES, share)

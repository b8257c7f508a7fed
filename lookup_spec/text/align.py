"""Which lines of a file a rewritten version keeps, decided while that version is still being written."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

_LEAST = 8  # letters; a shorter match, like "else:", says too little about where an answer is
_SHARE = 0.5  # of the letters that a change removes must be repeated behind it
_RARE = 8  # places; a line that stands in more says nothing about it


@dataclass(frozen=True, slots=True)
class Change:
    """The old lines ``start:end`` give way to others; to none if they are deleted."""

    start: int
    end: int
    lines: tuple[str, ...]


class Aligner:
    """Follows a new version line by line through the old one.

    A change is told once the new version is surely back on unchanged lines, and what is told is never taken back. The
    more a change removes, the more must follow: half as many letters of the old text as it removes. Else a block
    copied to an earlier place would pass for a deletion of all that stands between, and if the new version ended
    there, that would be lost. (Of 200 commits, cut off after the worst line, this loses 16 lines in 5; 8 letters
    always, 435 in 14. Half of the changes are told within a line behind them, nine tenths within seven.)

    Args:
        old: the old lines, with their line ends.

    Attributes:
        passed: old lines that are settled, kept or changed.
        pending: new lines since the first that differs; not told yet.
    """

    def __init__(self, old: Sequence[str]) -> None:
        self.passed = 0
        self.pending: list[str] = []
        self._old = old
        letters = [sum(map(str.isalnum, line)) for line in old]
        self._letters = [0, *accumulate(letters)]
        self._places: dict[str, list[int]] = defaultdict(list)
        count = Counter(old)
        for place, line in enumerate(old):
            if letters[place] and count[line] <= _RARE:
                self._places[line].append(place)
        # Where the last new lines may stand in the old text: end of the stretch there, and how many they are.
        self._runs: dict[int, int] = {}

    def push(self, line: str) -> list[Change]:
        """Takes the next new line; returns the changes that are sure now, in order."""
        if not self.pending and self.passed < len(self._old) and line == self._old[self.passed]:
            self.passed += 1
            return []
        self.pending.append(line)
        self._runs = dict(self._followed(line))
        sure = [end for end, length in self._runs.items() if self._is_sure(end - length, end)]
        if not sure:
            return []
        end = min(sure, key=lambda end: end - self._runs[end])
        return self._settle(end, self._runs[end])

    def finish(self) -> list[Change]:
        """The remaining changes, now that the new version is complete."""
        return self._settle(len(self._old), 0)

    def _followed(self, line: str) -> Iterator[tuple[int, int]]:
        """The stretches that the last new line ends."""
        known = set()
        for end, length in self._runs.items():
            if end < len(self._old) and self._old[end] == line:
                known.add(end + 1)
                yield end + 1, length + 1
        for place in self._places.get(line, ()):
            if place >= self.passed and place + 1 not in known:
                yield place + 1, self._length(place + 1)

    def _length(self, end: int) -> int:
        """How many of the last new lines are the old ones before ``end``."""
        longest = min(len(self.pending), end - self.passed)
        same = (self.pending[-1 - n] == self._old[end - 1 - n] for n in range(longest))
        return next((n for n, is_same in enumerate(same) if not is_same), longest)

    def _is_sure(self, start: int, end: int) -> bool:
        kept = self._letters[end] - self._letters[start]
        lost = self._letters[start] - self._letters[self.passed]
        return kept >= max(_LEAST, lost * _SHARE)

    def _settle(self, end: int, kept: int) -> list[Change]:
        """Passes the old lines up to ``end``, the last of which the new version keeps."""
        old = self._old[self.passed : end - kept]
        new = self.pending[: len(self.pending) - kept]
        changes = [
            replace(change, start=self.passed + change.start, end=self.passed + change.end)
            for change in differences(old, new)
        ]
        self.passed, self.pending, self._runs = end, [], {}
        return changes


def differences(old: Sequence[str], new: Sequence[str]) -> Iterator[Change]:
    """What changed between two complete versions, in order; a kept line stands between any two changes.

    Patience diff (Bram Cohen): lines that occur once in both versions and in the same order hold them together.
    """
    stretches = [(0, len(old), 0, len(new))]
    while stretches:
        old_start, old_end, new_start, new_end = stretches.pop()
        while old_start < old_end and new_start < new_end and old[old_start] == new[new_start]:
            old_start, new_start = old_start + 1, new_start + 1
        while old_start < old_end and new_start < new_end and old[old_end - 1] == new[new_end - 1]:
            old_end, new_end = old_end - 1, new_end - 1
        anchors = [(old_start + i, new_start + j) for i, j in _anchors(old[old_start:old_end], new[new_start:new_end])]
        if anchors:
            edges = [(old_start, new_start), *anchors, (old_end, new_end)]
            stretches += [(i, k, j, m) for (i, j), (k, m) in reversed([*pairwise(edges)])]
        elif old_start < old_end or new_start < new_end:
            yield Change(old_start, old_end, tuple(new[new_start:new_end]))


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """The longest ascending chain of pairs of equal lines, among those that occur once in both."""
    once_old, once_new = ({line for line, count in Counter(lines).items() if count == 1} for lines in (old, new))
    places = {line: place for place, line in enumerate(old) if line in once_old & once_new}
    pairs = [(places[line], place) for place, line in enumerate(new) if line in places]
    # Patience sorting: piles[n] ends the best chain of n + 1 pairs, and each pair remembers the one before it.
    tops: list[int] = []
    piles: list[int] = []
    before: list[int] = []
    for n, (place, _) in enumerate(pairs):
        pile = bisect_left(tops, place)
        before.append(piles[pile - 1] if pile else -1)
        if pile == len(tops):
            tops.append(place)
            piles.append(n)
        else:
            tops[pile], piles[pile] = place, n
    chain: list[tuple[int, int]] = []
    last = piles[-1] if piles else -1
    while last >= 0:
        chain.append(pairs[last])
        last = before[last]
    return chain[::-1]

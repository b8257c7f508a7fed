"""A text as it will stand once the names that are known to change have changed."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence

from lookup_spec.propose.guess import Guess, Kind
from lookup_spec.propose.rename import Rename, Retokenizer, Rewritten, announced, noticed, rewrite

NEVER = 1 << 60
"""A place behind all places."""

_MOST = 8
_REFUTED = 2


class RenamedText:
    """A text with renames applied to it; where one is applied, the text may go on with the old name, too.

    Args:
        original: the text, with whatever stands around it.
        low: names are changed from here …
        high: … to here.
        retokenizer: knows the tokenizer; None changes nothing.
    """

    def __init__(self, original: Sequence[int], low: int, high: int, retokenizer: Retokenizer | None = None) -> None:
        self._original = original
        self._low, self._high = low, high
        self._retokenizer = retokenizer
        self._pieces: list[str] | None = None
        self._counts: dict[Rename, list[int]] = {}  # how often applied and kept
        self._refuted: set[Rename] = set()
        self._text = Rewritten.unchanged(original)
        self._fork_places: list[int] = []

    @property
    def ids(self) -> list[int]:
        """The text with all renames; a new object after each change."""
        return self._text.ids

    def place(self, original: int) -> int:
        """Where a place of the original is now."""
        return self._text.places[original]

    def places(self, originals: Iterable[int]) -> list[int]:
        """Where places of the original are now."""
        table = self._text.places
        return [table[place] for place in originals]

    def original(self, place: int) -> int:
        """The last place of the original that is now at ``place`` or before."""
        return self._text.original(place)

    def next_fork(self, start: int) -> int:
        """The first place from ``start`` on where a rename is applied, or ``NEVER``."""
        index = bisect_left(self._fork_places, start)
        return self._fork_places[index] if index < len(self._fork_places) else NEVER

    def branches(self, place: int) -> list[Guess]:
        """The two ways on at a fork: with the new name, and with the old one."""
        fork = self._text.forks[place]
        applied, kept = self._counts[fork.rename]
        length, detail = min(applied, 4), min(kept, 3)
        return [
            Guess(Kind.RENAMED, self.ids, place, length, detail),
            Guess(Kind.KEPT, self._original, fork.original, length, detail),
        ]

    def tally(self, place: int, applied: bool) -> None:
        """Takes in which way the answer went at a fork."""
        self._counts[self._text.forks[place].rename][0 if applied else 1] += 1

    def announce(self, message: Sequence[int]) -> bool:
        """Applies the renames that a message asks for; false if there are none."""
        if self._retokenizer is None:
            return False
        wanted = announced("".join(self._retokenizer.pieces(message)))
        return bool(wanted) and self._apply(wanted)

    def notice(self, before: Sequence[int], after: Sequence[int]) -> bool:
        """Applies the rename in which two stretches of base and answer differ; false if it is not one."""
        if self._retokenizer is None:
            return False
        rename = noticed(*("".join(self._retokenizer.pieces(ids)) for ids in (before, after)))
        return rename is not None and self._apply([rename])

    def drop_refuted(self) -> bool:
        """Takes back renames that the answer did not follow; false if there are none."""
        refuted = [rename for rename, (applied, kept) in self._counts.items() if kept >= _REFUTED and kept > applied]
        for rename in refuted:
            del self._counts[rename]
        self._refuted.update(refuted)
        return bool(refuted) and self._rewrite()

    def _apply(self, renames: Sequence[Rename]) -> bool:
        names = self._names()
        taken = {rename.old for rename in self._counts}
        fresh = [rename for rename in renames if rename.old in names - taken and rename not in self._refuted][
            : max(0, _MOST - len(self._counts))
        ]
        self._counts.update((rename, [0, 0]) for rename in fresh)
        return bool(fresh) and self._rewrite()

    def _names(self) -> set[str]:
        assert self._retokenizer is not None
        if self._pieces is None:
            self._pieces = self._retokenizer.pieces(self._original[self._low : self._high])
        return set(re.findall(r"\w+", "".join(self._pieces)))

    def _rewrite(self) -> bool:
        assert self._retokenizer is not None
        assert self._pieces is not None
        low, high, original = self._low, self._high, self._original
        if not self._counts:
            self._text = Rewritten.unchanged(original)
        else:
            body = rewrite(original[low:high], self._pieces, list(self._counts), self._retokenizer)
            self._text = body.between(original, low, high)
        self._fork_places = sorted(self._text.forks)
        return True

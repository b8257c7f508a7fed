"""Where in the base the answer stands, and how it may go on from there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from lookup_spec.propose.guess import Guess, Kind, matched
from lookup_spec.propose.rename import Retokenizer
from lookup_spec.propose.renamed import NEVER, RenamedText

_STRONG = 8
_NEAR = 32
_ANCHORS = 3
_SETTLED = 200
_GAP_BUCKETS = (0, 0, 1, 2, 3, 3, *[4] * 4, *[5] * 20)
_LARGEST_CHANGE = 12
_CONTEXT = 6


class Base:
    """The text that the answer is expected to follow, with a cursor.

    ``gap`` counts the tokens written since the answer left the base at ``cursor``; while it is 0, the answer
    follows the base, and has done so for ``run`` tokens. Anchors are the last few places where the answer
    left the base after following it for a while; they are kept while other places are tried.

    Args:
        ids: the whole answer as it is expected if nothing changes.
        low: where the text itself begins in it, behind what opens it.
        high: where it ends.
        retokenizer: knows the tokenizer; None proposes no renames.
    """

    def __init__(self, ids: Sequence[int], low: int, high: int, retokenizer: Retokenizer | None = None) -> None:
        self._text = RenamedText(ids, low, high, retokenizer)
        self._low = low
        self.ids = self._text.ids
        self.cursor, self.gap, self.run = low, 0, 0
        self._anchors: list[int] = []
        self._changed: tuple[Sequence[int], Sequence[int]] | None = None
        self._doubtful = False

    def announce(self, message: Sequence[int]) -> None:
        """Takes in a message that may ask for renames; to be called before anything is written."""
        self._change(lambda: self._text.announce(message))

    def first_guesses(self) -> list[Guess]:
        """How the answer may begin."""
        places = dict.fromkeys((0, self._low))
        return [Guess(Kind.START, self.ids, p, 0, n) for n, p in enumerate(places) if p < len(self.ids)]

    def guesses(self, known: Sequence[int]) -> list[Guess]:
        """How the answer may go on from where it stands, or stood, in the base."""
        ids, cursor = self.ids, self.cursor
        found = self._following() if self.gap == 0 else self._coming_back(known)
        if self.run < _STRONG:
            for age, anchor in enumerate(reversed(self._anchors)):
                if anchor != cursor:
                    found.append(Guess(Kind.RETURN, ids, anchor, matched(known, ids, anchor), age))
        return [guess for guess in found if guess.place < len(guess.text)]

    def _following(self) -> list[Guess]:
        if self.next_fork(self.ids, self.cursor) == self.cursor:
            return self.branches(self.cursor)
        return [Guess(Kind.CONTINUE, self.ids, self.cursor, self.run, 0)]

    def _coming_back(self, known: Sequence[int]) -> list[Guess]:
        ids, cursor, gap = self.ids, self.cursor, self.gap
        places = [(Kind.INSERT, cursor)]
        if gap <= 16:
            places.append((Kind.SUBSTITUTE, cursor + gap))
        if gap > 1:
            places.append((Kind.SKIP, cursor + 1))
        detail = _GAP_BUCKETS[gap] if gap < len(_GAP_BUCKETS) else 6
        return [
            Guess(kind, ids, place, matched(known, ids, place), detail) for kind, place in places if place < len(ids)
        ]

    def places(self, originals: Iterable[int]) -> list[int]:
        """Where places of the original are in ``ids``."""
        return self._text.places(originals)

    def branches(self, place: int) -> list[Guess]:
        """The two ways on at a fork."""
        return self._text.branches(place)

    def pivots(self) -> list[int]:
        """Places of the original around which matches are likelier than elsewhere, the cursor's first."""
        return [self._text.original(place) for place in (self.cursor, *self._anchors)]

    def kinds(self, places: Iterable[int]) -> list[tuple[Kind, int]]:
        """What matches at these places are to the cursor, each with its place."""
        cursor, behind, ahead = self.cursor, Kind.BEHIND, Kind.AHEAD
        # What was said last holds: the cursor's own surroundings before those of anchors.
        stretches = [(anchor, anchor + _NEAR, Kind.RESUME) for anchor in self._anchors]
        stretches.append((cursor + 1, cursor + _NEAR, Kind.NEAR))
        kinds = []
        for place in places:
            kind = behind if place <= cursor else ahead
            for start, end, special in stretches:
                if start <= place < end:
                    kind = special
            kinds.append((kind, place))
        return kinds

    def next_fork(self, text: Sequence[int], start: int) -> int:
        """The first place from ``start`` on where ``text`` may go on in two ways, or ``NEVER``."""
        return self._text.next_fork(start) if text is self.ids else NEVER

    def leave(self, count: int) -> None:
        """``count`` tokens were written that the base does not hold where the answer stands."""
        if self.gap == 0 and self.run >= _STRONG and self.cursor not in self._anchors:
            self._anchors = [*self._anchors[1 - _ANCHORS :], self.cursor]
        self.gap, self.run = self.gap + count, 0

    def follow(self, count: int) -> None:
        """``count`` tokens were written that stand at the cursor."""
        self.cursor, self.run = self.cursor + count, self.run + count
        self._settle()

    def jump(self, place: int, length: int, depth: int, written: Sequence[int]) -> None:
        """The answer stands at ``place`` now, having gone on from elsewhere for ``depth`` tokens.

        Args:
            place: in ``ids``.
            length: how many of the tokens before these agreed with the base, too.
            depth: at least 1.
            written: the text up to there, or enough of its end.
        """
        left, gap = self.cursor, self.gap
        self.leave(0)
        self.cursor, self.gap, self.run = place, 0, length + depth
        self._settle()
        replaced = place - depth - length - left
        if 0 < gap <= _LARGEST_CHANGE and 0 <= replaced <= _LARGEST_CHANGE and left - self._low >= _CONTEXT:
            self._changed = (
                self.ids[left - _CONTEXT : place], written[len(written) - _CONTEXT - gap - depth :]
            )  # fmt: skip

    def keep(self, original: int, count: int) -> None:
        """``count`` tokens were written that stand in the original, up to there, where a rename was
        expected."""
        self.cursor, self.run = self._text.place(original), self.run + count

    def tally(self, place: int, applied: bool) -> None:
        """Takes in which way the answer went at a fork."""
        self._text.tally(place, applied)
        self._doubtful = self._doubtful or not applied

    def revise(self) -> None:
        """Applies a rename that was just seen, and takes back those that the answer does not follow.

        Places in ``ids`` are other ones afterwards.
        """
        if self._changed is not None:
            before, after = self._changed
            self._changed = None
            self._change(lambda: self._text.notice(before, after))
        if self._doubtful:
            self._doubtful = False
            self._change(self._text.drop_refuted)

    def _change(self, change: Callable[[], bool]) -> None:
        places = [self._text.original(place) for place in (self.cursor, *self._anchors)]
        if change():
            self.ids = self._text.ids
            self.cursor, *self._anchors = (self._text.place(place) for place in places)

    def _settle(self) -> None:
        if self.run >= _STRONG and self._anchors:
            place = self.cursor
            self._anchors = [anchor for anchor in self._anchors if not anchor <= place < anchor + _SETTLED]

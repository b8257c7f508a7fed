"""Where in the base the answer stands, and how it may go on from there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from lookup_spec.propose.changed import NEVER, Changes, Return
from lookup_spec.propose.ending import Ending, Endings
from lookup_spec.propose.guess import Guess, Kind, matched

_STRONG = 8
_NEAR = 32
_LINE, _LINES, _TOKENS = 24, 60, 16
_ALIKE = 3
_ANCHORS = 3
_SETTLED = 200
_GAP_BUCKETS = (0, 0, 1, 2, 3, 3, *[4] * 4, *[5] * 20)
LATER = 2
"""Detail of a start that comes after other lines."""


class Base:
    """The text that the answer is expected to follow, with a cursor.

    ``gap`` counts the tokens written since the answer left the base at ``cursor``; while it is 0, the answer
    follows the base, and has done so for ``run`` tokens. Anchors are the last few places where the answer
    left the base after following it for a while; they are kept while other places are tried.

    Args:
        ids: the whole answer as it is expected if nothing changes.
        low: where the text itself begins in it, behind what opens it.
        endings: of tokens.
        changes: of the text between ``low`` and its end; None proposes none.
    """

    def __init__(self, ids: Sequence[int], low: int, endings: Endings, changes: Changes | None = None) -> None:
        self.ids = ids
        self._low = low
        self._endings = endings
        self._changes = changes
        self.cursor, self.gap, self.run = low, 0, 0
        self._begun = False  # the base was followed for a while
        self._anchors: list[int] = []
        self._ahead: Guess | None = None  # the rest of the detour at the cursor that the answer is in

    def first_guesses(self) -> list[Guess]:
        """How the answer may begin."""
        places = dict.fromkeys((0, self._low))
        return [Guess(Kind.START, self.ids, p, 0, n) for n, p in enumerate(places) if p < len(self.ids)]

    def guesses(self, known: Sequence[int]) -> list[Guess]:
        """How the answer may go on from where it stands, or stood, in the base."""
        found = self._following() if self.gap == 0 else self._coming_back(known)
        if self._low and not self._begun and self._endings[known[-1]] == Ending.LINE:
            found.append(Guess(Kind.START, self.ids, 0, 0, LATER))
        return [guess for guess in found if guess.place < len(guess.text)]

    def _following(self) -> list[Guess]:
        if self._ahead is not None:
            return [self._ahead]
        return self.branches(self.cursor) or [Guess(Kind.CONTINUE, self.ids, self.cursor, self.run, 0)]

    def _coming_back(self, known: Sequence[int]) -> list[Guess]:
        ids, cursor, gap = self.ids, self.cursor, self.gap
        places = [(Kind.INSERT, cursor)]
        if gap <= 16:
            places.append((Kind.SUBSTITUTE, cursor + gap))
        if gap > 1:
            places.append((Kind.SKIP, cursor + 1))
        detail = _GAP_BUCKETS[gap] if gap < len(_GAP_BUCKETS) else 6
        found = [self._guess(kind, known, place, detail) for kind, place in places if place < len(ids)]
        taken = {place for _, place in places}
        for place, number in self._alike(self._endings[known[-1]]):
            if place not in taken:
                taken.add(place)
                found.append(Guess(Kind.ALIKE, ids, place, matched(known, ids, place), 7 * number + detail))
        return found

    def _guess(self, kind: Kind, known: Sequence[int], place: int, detail: int) -> Guess:
        """A guess whose detail also tells whether text and base end alike before it."""
        ids, endings = self.ids, self._endings
        alike = place > 0 and endings[ids[place - 1]] == endings[known[-1]]
        return Guess(kind, ids, place, matched(known, ids, place), 2 * detail + alike)

    def _alike(self, ending: Ending) -> list[tuple[int, int]]:
        """Places a little after the cursor where the base ends like the text does, each with its number.

        At the end of a line also where the line begins in which the base was left, and the same for the place where it
        was left before.
        """
        ids, endings, cursor = self.ids, self._endings, self.cursor
        if ending != Ending.LINE:
            places = range(cursor + 1, min(cursor + _TOKENS, len(ids)))
            alike = (place for place in places if endings[ids[place - 1]] == ending)
            return list(zip(islice(alike, _ALIKE), range(_ALIKE)))  # noqa: B905 - as many as there are
        found = []
        for number, pivot in enumerate((cursor, *self._anchors[-1:])):
            line = next(self._lines(range(pivot, pivot - _LINE, -1)), None)
            lines = islice(self._lines(range(pivot + 1, pivot + _LINES)), _ALIKE)
            found += [
                (place, (_ALIKE + 1) * number + after)
                for after, place in enumerate((line, *lines))
                if place is not None
            ]
        return found

    def _lines(self, places: Iterable[int]) -> Iterator[int]:
        """Those of the places where a line begins."""
        ids, endings = self.ids, self._endings
        return (place for place in places if self._low < place < len(ids) and endings[ids[place - 1]] == Ending.LINE)

    def branches(self, place: int) -> list[Guess]:
        """The two ways on where the text may change, or none."""
        detour = None if self._changes is None else self._changes.at(place)
        return [] if self._changes is None or detour is None else self._changes.guesses(detour)

    @property
    def changing(self) -> bool:
        """Whether any change of the text is known."""
        return self._changes is not None and self._changes.known

    def changed(self, guess: Guess) -> list[Guess]:
        """A guess, and, where the base may change, the same with the change."""
        if guess.text is not self.ids or self._changes is None:
            return [guess]
        detour = self._changes.at(guess.place)
        return [guess] if detour is None else [guess, guess._replace(text=detour.ids, place=0, detour=detour)]

    def pace(self, guess: Guess) -> tuple[Kind, int]:
        """What is known about how far a guess goes well, once its first token came: kind and length."""
        if guess.kind in (Kind.RENAMED, Kind.INDENTED, Kind.REPLACED, Kind.KEPT):
            return Kind.CONTINUE, self.run
        return guess.kind, guess.length

    def follows(self, guess: Guess) -> bool:
        """Whether the answer stands where a guess begins."""
        if guess.detour is not None:
            return self.gap == 0 and guess.detour.start == self.cursor
        return self.gap == 0 and guess.place == self.cursor and guess.text is self.ids

    def copied(self, guess: Guess, count: int) -> Sequence[int]:
        """The next tokens of a guess, at most ``count``, as if nothing of the text changed behind its beginning."""
        _, text, place, *_ = guess
        if guess.detour is None:
            return text[place : place + count]
        end = guess.detour.end
        return [*islice(text, place, place + count), *self.ids[end : end + max(0, count - (len(text) - place))]]

    def ahead(self, guess: Guess, count: int) -> tuple[list[int], int]:
        """The next tokens of a guess, at most ``count``, and the place where the text may change that ends
        them, or ``NEVER``."""
        text, place = guess.text, guess.place
        tokens: list[int] = []
        if guess.detour is not None:
            tokens = list(islice(text, place, place + count))
            text, place, count = self.ids, guess.detour.end, count - len(tokens)
        if text is not self.ids or self._changes is None:
            return [*tokens, *text[place : place + count]], NEVER
        fork = self._changes.next_fork(place + (not tokens), place + count)
        return [*tokens, *text[place : min(fork, place + count)]], fork

    def pivots(self) -> list[int]:
        """Places around which matches are likelier than elsewhere, the cursor's first."""
        return [self.cursor, *self._anchors]

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

    def leave(self, count: int) -> None:
        """``count`` tokens were written that the base does not hold where the answer stands."""
        if self._ahead is not None:
            self.gap, self._ahead = self._ahead.place, None
        elif self.gap == 0 and self.run >= _STRONG and self.cursor not in self._anchors:
            self._anchors = [*self._anchors[1 - _ANCHORS :], self.cursor]
        self.gap, self.run = self.gap + count, 0

    def follow(self, guess: Guess, depth: int) -> None:
        """``depth`` tokens of a guess at the cursor were written."""
        self._arrive(guess, depth)
        self.run += depth
        self._settle()

    def jump(self, guess: Guess, depth: int, known: Sequence[int], end: int) -> None:
        """The answer stands behind ``depth`` tokens of a guess now, having gone on from elsewhere.

        Args:
            guess: of a place in the base, or of a detour.
            depth: at least 1.
            known: the text so far.
            end: how much of it there was when those tokens were written.
        """
        if self._ahead is not None:
            self.leave(0)
        left, gap = self.cursor, self.gap
        self.leave(0)
        self._arrive(guess, depth)
        self.gap, self.run = 0, guess.length + depth
        self._settle()
        if self._changes is not None and guess.detour is None:
            self._changes.notice(Return(left, gap, guess.place, guess.length, depth), known, end)

    def _arrive(self, guess: Guess, depth: int) -> None:
        place = guess.place + depth
        self._ahead = None
        if guess.detour is None:
            self.cursor = place
        elif place < len(guess.text):
            self.cursor = guess.detour.start
            self._ahead = guess._replace(kind=Kind.CONTINUE, place=place, length=self.run + depth, detail=0)
        else:
            self.cursor = guess.detour.end + place - len(guess.text)

    def tally(self, guess: Guess) -> None:
        """Takes in that the answer went on with a guess, where the text may change or elsewhere."""
        if self._changes is None:
            return
        if guess.detour is not None:
            if guess.place == 0:
                self._changes.tally(guess.detour, applied=True)
        elif guess.text is self.ids:
            detour = self._changes.at(guess.place)
            if detour is not None:
                self._changes.tally(detour, applied=False)

    def _settle(self) -> None:
        self._begun = self._begun or self.run >= _STRONG
        if self.run >= _STRONG and self._anchors:
            place = self.cursor
            self._anchors = [anchor for anchor in self._anchors if not anchor <= place < anchor + _SETTLED]

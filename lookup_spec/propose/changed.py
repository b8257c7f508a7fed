"""What is known to change in a text, and where it takes the answer off the text's own tokens."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

from lookup_spec.propose.announced import announced
from lookup_spec.propose.change import Change, Edit, Indent, Reach
from lookup_spec.propose.detour import detours, stretches
from lookup_spec.propose.guess import Detour, Guess, Kind
from lookup_spec.propose.noticed import Difference, noticed, reindented
from lookup_spec.propose.pages import Page, Pages
from lookup_spec.propose.retokenizer import Retokenizer

NEVER = 1 << 60
"""A place behind all places."""

_MOST = 12
_MOST_TOKENS = 12
_LONGEST_HEAD = 64
_REFUTED = 2


class Return(NamedTuple):
    """How an answer came back to the text that it follows.

    Attributes:
        left: the place in the text where it had left.
        gap: tokens written since.
        place: where it came back.
        length: tokens before that which stood in both, some of the gap's perhaps among them.
        depth: tokens from there on that stood in both.
    """

    left: int
    gap: int
    place: int
    length: int
    depth: int


class Changes:
    """Changes of a text. Nothing is rewritten but what is looked at.

    Args:
        ids: the text, with whatever stands around it.
        low: it changes from here …
        high: … to here.
        retokenizer: knows the tokenizer.
    """

    def __init__(self, ids: Sequence[int], low: int, high: int, retokenizer: Retokenizer) -> None:
        self._ids, self._low = ids, low
        self._retokenizer = retokenizer
        self._pages = Pages(ids, low, high, retokenizer)
        self._changes: list[Change] = []
        self._indent: Indent | None = None  # the last one seen
        self._counts: dict[tuple[Hashable, int], list[int]] = {}  # how often applied and kept
        self._marked: dict[int, _Marked] = {}  # by where the page begins

    def add(self, changes: Iterable[Change]) -> None:
        """From now on these apply, too."""
        for change in changes:
            if change not in self._changes:
                self._changes = [*self._changes[1 - _MOST :], change]
                self._marked.clear()

    def announce(self, message: Sequence[int]) -> None:
        """Takes in a message that may ask for changes; to be called before anything is written."""
        self.add(announced("".join(self._retokenizer.pieces(message))))

    def notice(self, back: Return, known: Sequence[int], end: int) -> None:
        """Takes in what may have been the first place of a change.

        Args:
            back: how the answer came back.
            known: the text so far.
            end: how much of it there was then.
        """
        indent = self._indent_seen(back, known, end)
        if indent is not None:
            self._reindent(indent)
        difference = self._difference(back, known, end)
        if difference is not None:
            self.add(noticed(difference))

    def _indent_seen(self, back: Return, known: Sequence[int], end: int) -> Indent | None:
        """How the line where the answer came back is indented, if otherwise than before."""
        page, pieces = self._pages.at(back.place), self._retokenizer.pieces
        if page is None:
            return None
        came = "".join(pieces(self._ids[back.place : min(back.place + back.depth, page.end)])).partition("\n")[0]
        begun = "".join(pieces(known[max(0, end - back.depth - _LONGEST_HEAD) : end - back.depth]))
        return reindented(page.line(back.place)[0] + came, begun[begun.rfind("\n") + 1 :] + came)

    def _difference(self, back: Return, known: Sequence[int], end: int) -> Difference | None:
        """What the answer put in the place of what, if that is not much."""
        left, gap, place, length, depth = back
        agreed = min(length, gap, place - left)
        page = self._pages.at(left)
        if page is None or agreed < 0 or max(place - left, gap) - agreed > _MOST_TOKENS:
            return None
        old, new, tail = (
            "".join(self._retokenizer.pieces(ids))
            for ids in (
                self._ids[left : place - agreed],
                known[end - depth - gap : end - depth - agreed],
                self._ids[place - agreed : place + depth],
            )
        )
        behind = page.line(min(place - agreed, page.end))[1]
        return Difference(page.line(left)[0], old, new, tail, behind[len(tail) :])

    def _reindent(self, indent: Indent) -> None:
        """From now on this indentation applies, unless the present one tells the same."""
        if any(isinstance(change, Indent) and change.covers(indent) for change in self._changes):
            return
        self._remove_indents()
        self._indent = indent.after(self._indent)
        self.add([self._indent])

    def _remove_indents(self) -> None:
        gone = [change for change in self._changes if change.kind == Kind.INDENTED]
        for change in gone:
            self._changes.remove(change)
            for reach in Reach:
                self._counts.pop((change, reach), None)
        if gone:
            self._marked.clear()

    @property
    def known(self) -> bool:
        """Whether there are any."""
        return bool(self._changes)

    def next_fork(self, start: int, stop: int) -> int:
        """The first place in ``range(start, stop)`` where a detour begins, or ``NEVER``."""
        if not self._changes:
            return NEVER
        place = max(start, self._low)
        while place < stop:
            page = self._pages.at(place)
            if page is None:
                break
            fork = self._on_page(page).next_fork(place, stop)
            if fork is not None:
                return fork if fork < stop else NEVER
            place = page.end
        return NEVER

    def at(self, place: int) -> Detour | None:
        """The detour that begins at a place, if one does."""
        page = self._pages.at(place) if self._changes else None
        return None if page is None else self._on_page(page).at(place)

    def guesses(self, detour: Detour) -> list[Guess]:
        """The two ways on where a detour begins: along it, and along the text."""
        applied, kept = self._counts.get((detour.reason, detour.reach), (0, 0))
        length, detail = min(applied, 4), min(kept, 3) + 4 * detour.reach
        return [
            Guess(detour.kind, detour.ids, 0, length, detail, detour),
            Guess(Kind.KEPT, self._ids, detour.start, length, detail),
        ]

    def tally(self, detour: Detour, applied: bool) -> None:
        """Takes in which way the answer went where a detour begins."""
        counts = self._counts.setdefault((detour.reason, detour.reach), [0, 0])
        counts[0 if applied else 1] += 1
        if detour.kind == Kind.INDENTED:
            if not applied:
                self._remove_indents()
        elif self._refuted(detour.reason, detour.reach):
            self._marked.clear()

    def _refuted(self, reason: Hashable, reach: int) -> bool:
        applied, kept = self._counts.get((reason, reach), (0, 0))
        return kept >= _REFUTED and kept > applied

    def _on_page(self, page: Page) -> _Marked:
        marked = self._marked.get(page.start)
        if marked is None:
            marked = self._marked[page.start] = _Marked(self._ids, page, self._edits(page.text), self._retokenizer)
        return marked

    def _edits(self, text: str) -> list[Edit]:
        found = [
            edit for change in self._changes for edit in change.edits(text) if not self._refuted(change, edit.reach)
        ]
        found.sort(key=attrgetter("start"))
        disjoint: list[Edit] = []
        for edit in found:
            if not disjoint or disjoint[-1].end <= edit.start:
                disjoint.append(edit)
        return disjoint


class _Marked:
    """A page with its edits; what they make of its tokens is worked out where it is asked for."""

    def __init__(self, ids: Sequence[int], page: Page, edits: Sequence[Edit], retokenizer: Retokenizer) -> None:
        self._ids, self._page, self._retokenizer = ids, page, retokenizer
        self._stretches = stretches(page, edits)
        self._starts = [page.start + start for start, _, _ in self._stretches]
        self._detours: list[dict[int, Detour] | None] = [None] * len(self._stretches)

    def next_fork(self, place: int, stop: int) -> int | None:
        """The first place from ``place`` on where a detour begins, if it is before ``stop``."""
        number = max(0, bisect_right(self._starts, place) - 1)
        while number < len(self._starts) and self._starts[number] < stop:
            for fork in self._in_stretch(number):
                if place <= fork:
                    return fork
            number += 1
        return None

    def at(self, place: int) -> Detour | None:
        """The detour that begins at a place, if one does."""
        number = bisect_right(self._starts, place) - 1
        return None if number < 0 else self._in_stretch(number).get(place)

    def _in_stretch(self, number: int) -> dict[int, Detour]:
        found = self._detours[number]
        if found is None:
            ways = detours(self._ids, self._page, *self._stretches[number], self._retokenizer)
            found = self._detours[number] = {detour.start: detour for detour in ways}
        return found

"""Looks continuations up in the text being edited, the rest of the prompt, and the answer so far."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, chain, pairwise
from operator import itemgetter

from lookup_spec.propose.alike import Alike
from lookup_spec.propose.base import Base
from lookup_spec.propose.blocks import blocks
from lookup_spec.propose.changed import NEVER, Changes
from lookup_spec.propose.counts import count
from lookup_spec.propose.ending import Ending, Endings
from lookup_spec.propose.frame import framed
from lookup_spec.propose.grow import Judged, Ranked, grow, judge, leading, rank
from lookup_spec.propose.guess import Guess, Kind
from lookup_spec.propose.hazard import DEPTH_BUCKETS, Hazards, shipped
from lookup_spec.propose.index import Index
from lookup_spec.propose.prompt import Prompt, Span
from lookup_spec.propose.retokenizer import Retokenizer
from lookup_spec.propose.seen import Seen
from lookup_spec.propose.segment import Segment
from lookup_spec.propose.shaped import ShapedSegment
from lookup_spec.propose.store import SegmentStore
from lookup_spec.propose.successors import WORDS, Successors
from lookup_spec.propose.tree import DraftTree

DEFAULT_FLOOR = 0.025

_SURE = 32
_UNSURE = 0.2
_FAR_MATCH = 5
_LIKELY = 0.2
_LONGEST_MESSAGE = 512


class LookupProposer:
    """Follows the base through its changes, and looks elsewhere where that fails.

    The base is what the answer is expected to follow: the prompt's prediction if it has one, else its first
    span of kind ``"base"``, else the whole prompt.

    Args:
        store: where segments are kept between requests; None indexes each prompt anew.
        tenant: whose segments may be used.
        hazards: counts to use and to add to; None starts, with each prompt, from those that come with the package.
        retokenizer: knows the tokenizer; None proposes no renames.
        floor: nodes of less estimated path probability are not drafted.
    """

    runner_ups = WORDS

    def __init__(
        self,
        store: SegmentStore | None = None,
        *,
        tenant: str = "",
        hazards: Hazards | None = None,
        retokenizer: Retokenizer | None = None,
        floor: float = DEFAULT_FLOOR,
    ) -> None:
        self._store = store if store is not None else SegmentStore(max_bytes=0)
        self._tenant = tenant
        self._given = hazards
        self._retokenizer = retokenizer
        self._floor = floor

    def begin(self, prompt: Prompt) -> None:
        self._hazards = self._given if self._given is not None else Hazards(shipped(prompt.work))
        self._text = list(prompt.ids)
        self._start = len(prompt.ids)
        span = next((span for span in prompt.spans if span.kind == "base"), Span(0, len(prompt.ids), "base"))
        prediction = next((item for item in prompt.references if item.kind == "prediction"), None)
        expected = prediction if prediction is not None else framed(prompt.ids, span, self._retokenizer)
        self._endings = Endings(self._retokenizer)
        followed = list(expected.ids)
        changes = None
        if self._retokenizer is not None:
            changes = self._changes_of(followed, expected.opening, self._retokenizer)
            for start, end in _messages(prompt):
                changes.announce(prompt.ids[start:end])
        self._base = Base(followed, expected.opening, self._endings, changes)
        self._index = Index(self._text, self._base, self._segment(expected.ids))
        # The base stands in the prediction, too, and need not be looked up twice.
        for edges in _around(prompt, span):
            self._look_in(prompt.ids, edges)
        others = [reference.ids for reference in prompt.references if reference is not prediction]
        self._look_in(tuple(chain(*others)), list(accumulate(map(len, others), initial=0)))
        self._alike = None if self._retokenizer is None else self._alike_to(expected.ids, self._retokenizer)
        self._successors = Successors()
        self._ranked: list[Ranked] | None = None
        self._ending = Ending.WORD

    def _changes_of(self, ids: Sequence[int], low: int, retokenizer: Retokenizer) -> Changes:
        return Changes(ids, low, len(ids), retokenizer)

    def _look_in(self, text: Sequence[int], edges: Sequence[int]) -> None:
        for start, end in blocks(edges):
            self._index.add(text, start, self._segment(text[start:end]))

    def _alike_to(self, ids: Sequence[int], retokenizer: Retokenizer) -> Alike:
        def read(tokens: Sequence[int]) -> ShapedSegment:
            return ShapedSegment(retokenizer.pieces(tokens))

        return Alike(self._store.made(self._tenant, ids, read, "shaped"), ids, self._text, retokenizer)

    def _segment(self, ids: Sequence[int]) -> Segment:
        return self._store.get(self._tenant, ids)

    def propose(self, limit: int) -> DraftTree:
        if limit <= 0:
            return DraftTree.root(self._text[-1])
        ranked = self._guesses()
        return grow(
            self._text[-1], ranked, self._base, self._hazards, self._successors, self._ending, limit, self._floor
        )

    def observe(self, ids: Sequence[int], seen: Seen | None = None) -> None:
        if not ids:
            return
        ids = list(ids)
        hit = self._count_first(ids[0])
        self._text.extend(ids)
        self._index.extend(ids)
        if hit is None or hit[0].kind == Kind.SUCCESSOR:
            if hit is not None:
                self._count_successors(self._text[-len(ids) - 1], ids)
            self._base.leave(len(ids))
        else:
            self._go_on(self._furthest(hit, ids), ids)
        self._successors.take(seen)
        self._ranked = None

    def _guesses(self) -> list[Ranked]:
        if self._ranked is None:
            self._ending = self._endings[self._text[-1]]
            self._ranked = rank(self._all_guesses(), self._hazards, self._floor / 2)
        return self._ranked

    def _all_guesses(self) -> list[Judged]:
        """Guesses, each judged alone."""
        base = self._base
        begins = len(self._text) == self._start
        found = self._judge(base.first_guesses() if begins else base.guesses(self._text))
        # In a long copy nothing else comes near, and looking would be the greater part of the work.
        if not base.gap and base.run >= _SURE:
            return found
        if not begins:
            taken = {item.guess.place for item in found if item.guess.text is base.ids}
            found += self._judge(self._index.guesses(taken))
        if base.changing:
            # Seeing whether the base changes at a place takes a while, so only where it matters.
            likely = [item.guess for item in found if item.probability >= _LIKELY]
            found += self._judge(way for guess in likely for way in base.changed(guess)[1:])
        # Shapes are looked up only where little else is found: it takes as long as all the rest.
        if self._alike is not None and base.gap and all(item.probability < _UNSURE for item in found):
            found += self._judge(self._alike.guesses(base.pivots()[0]))
        return found + self._judge(self._successors.pending(self._text))

    def _judge(self, guesses: Iterable[Guess]) -> list[Judged]:
        return judge(guesses, self._hazards, self._ending)

    def _count_first(self, token: int) -> list[Guess] | None:
        """Counts which guesses were right; gives those that were."""
        hit: list[Guess] | None = None
        for _, guessed, guesses, ranked in self._guesses():
            came = guessed == token
            for item in guesses:
                count(item.counts, came)
            if hit is None and ranked is not None:
                count(ranked, came)
            if came:
                hit = leading(guesses)
        return hit

    def _count_successors(self, before: int, ids: Sequence[int]) -> None:
        """Counts, behind a successor that was right, which of its own were."""
        for token, came in pairwise(ids):
            guesses = self._successors.after(before, token)
            for guess in guesses:
                count(self._hazards.first(guess, self._ending), guess.token == came)
            if all(guess.token != came for guess in guesses):
                break
            before = token

    def _furthest(self, guesses: list[Guess], ids: list[int]) -> Guess:
        """The guess that went well for longest; counts how far the others did, and where to they parted."""
        if len(guesses) == 1:
            return guesses[0]
        base, hazards, ending = self._base, self._hazards, self._ending
        ways = [base.copied(guess, len(ids)) for guess in guesses]
        depths = [_common(way, ids[: len(way)]) for way in ways]
        best = max(range(len(ways)), key=depths.__getitem__)
        for number, (guess, way, depth) in enumerate(zip(guesses, ways, depths, strict=True)):
            if number != best:
                missed = depth < len(way)
                hazards.count_further(*base.pace(guess), ending, start=0, depth=depth, missed=missed)
        for depth in sorted(set(depths)):
            bucket = DEPTH_BUCKETS[min(depth, len(DEPTH_BUCKETS) - 1)]
            alone: dict[int, float] = {}
            for guess, way, most in zip(guesses, ways, depths, strict=True):
                if depth <= most and depth < len(way):
                    rate = hazards.further(*base.pace(guess), ending)[bucket]
                    alone[way[depth]] = max(alone.get(way[depth], 0.0), rate)
            if len(alone) > 1:
                for place, (token, rate) in enumerate(sorted(alone.items(), key=itemgetter(1), reverse=True)):
                    if place:
                        count(hazards.parted(place, rate), token == ids[depth])
                    if token == ids[depth]:
                        break
        return guesses[best]

    def _go_on(self, guess: Guess, ids: list[int]) -> None:
        """Counts how far guesses were right, and moves the base's cursor along."""
        base = self._base
        kind, length = base.pace(guess)
        done = 0
        while True:
            base.tally(guess)
            coming, fork = base.ahead(guess, len(ids) - done)
            depth = _common(coming, ids[done : done + len(coming)])
            missed = depth < len(coming)
            self._hazards.count_further(kind, length, self._ending, start=done, depth=done + depth, missed=missed)
            done += depth
            self._move(guess, depth, len(ids) - done)
            if done == len(ids) or base.gap:
                break
            # A change may just have become known, and the token that ended the step be its next place.
            branches = base.branches(base.cursor)
            if not missed and fork < NEVER:
                for branch in branches:
                    count(self._hazards.first(branch, self._ending), branch.token == ids[done])
            taken = [branch for branch in branches if branch.text[branch.place] == ids[done]]
            if not taken:
                break
            guess = taken[0]
        if done < len(ids):
            base.leave(len(ids) - done)

    def _move(self, guess: Guess, depth: int, left: int) -> None:
        base = self._base
        far = guess.kind in (Kind.BEHIND, Kind.AHEAD) and guess.length + depth < _FAR_MATCH
        if base.follows(guess):
            base.follow(guess, depth)
        elif (guess.text is base.ids or guess.detour is not None) and not far:
            base.jump(guess, depth, self._text, len(self._text) - left)
        else:
            base.leave(depth)


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """Length of the common head of two equally long sequences."""
    if list(one) == list(other):
        return len(one)
    return next(place for place, (left, right) in enumerate(zip(one, other, strict=True)) if left != right)


def _around(prompt: Prompt, span: Span) -> tuple[list[int], list[int]]:
    """The edges of the prompt's stretches before ``span``, and of those behind it."""
    edges = {0, len(prompt.ids), *(edge for item in prompt.spans for edge in (item.start, item.end))}
    cuts = sorted({*edges, span.start, span.end})
    return [cut for cut in cuts if cut <= span.start], [cut for cut in cuts if cut >= span.end]


def _messages(prompt: Prompt) -> list[tuple[int, int]]:
    """The short stretches of the prompt that are no documents: among them, what is asked for."""
    edges = [0, *(edge for span in prompt.spans for edge in (span.start, span.end)), len(prompt.ids)]
    return [
        (start, end)
        for start, end in zip(edges[::2], edges[1::2], strict=True)
        if start < end <= start + _LONGEST_MESSAGE
    ]

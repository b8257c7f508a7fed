"""Looks continuations up in the text being edited, the rest of the prompt, and the answer so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lookup_spec.propose.grow import grow, rank
from lookup_spec.propose.guess import Guess, Kind
from lookup_spec.propose.hazard import DEPTH_BUCKETS, Hazards
from lookup_spec.propose.prompt import Prompt
from lookup_spec.propose.segment import MAX_NGRAM, Segment
from lookup_spec.propose.store import SegmentStore
from lookup_spec.propose.tail import Tail, first
from lookup_spec.propose.tree import DraftTree

_FLOOR = 0.02
_ENOUGH = 16
_SCAN = 24
_NEAR = 64
_FAR_MATCH = 5
_LONGEST = 40


class LookupProposer:
    """Follows the base through its changes and looks elsewhere where that fails.

    Args:
        store: where segments are kept between requests; None indexes each prompt anew.
        tenant: whose segments may be used.
        hazards: counts to start from and to add to; may be shared between requests.
        floor: nodes of less estimated path probability are not drafted.
    """

    def __init__(
        self,
        store: SegmentStore | None = None,
        tenant: str = "",
        hazards: Hazards | None = None,
        floor: float = _FLOOR,
    ) -> None:
        self._store = store if store is not None else SegmentStore(max_bytes=0)
        self._tenant = tenant
        self._hazards = hazards if hazards is not None else Hazards()
        self._floor = floor

    def begin(self, prompt: Prompt) -> None:
        self._text = list(prompt.ids)
        self._tail, self._answer_start = Tail(), len(prompt.ids)
        base = next((span for span in prompt.spans if span.kind == "base"), None)
        self._low, self._high = (base.start, base.end) if base else (0, len(prompt.ids))
        self._segments: list[tuple[Sequence[int], int, Segment]] = []
        cuts = sorted(
            {0, len(prompt.ids), *(edge for span in prompt.spans for edge in (span.start, span.end))}
        )
        for start, end in zip(cuts, cuts[1:]):
            self._segments.append((self._text, start, self._store.get(self._tenant, prompt.ids[start:end])))
        for reference in prompt.references:
            self._segments.append((reference.ids, 0, self._store.get(self._tenant, reference.ids)))
        self._cursor, self._gap, self._run = self._low, 0, 0
        self._ranked: list[tuple[float, Guess]] | None = None

    def propose(self, limit: int) -> DraftTree:
        if limit <= 0:
            return DraftTree.root(self._text[-1])
        return grow(self._text[-1], self._guesses(), self._hazards, limit, self._floor)

    def observe(self, ids: Sequence[int]) -> None:
        if not ids:
            return
        ids = list(ids)
        self._learn(ids)
        self._tail.extend(ids)
        self._text.extend(ids)
        self._ranked = None

    def _guesses(self) -> list[tuple[float, Guess]]:
        if self._ranked is None:
            found: dict[int, Guess] = {}
            for guess in (*self._at_cursor(), *self._matching()):
                token = guess.text[guess.place]
                rival = found.get(token)
                if rival is None or self._hazards.first(rival) < self._hazards.first(guess):
                    found[token] = guess
            self._ranked = rank(list(found.values()), self._hazards)
        return self._ranked

    def _matched(self, text: Sequence[int], place: int) -> int:
        known = self._text
        length, most = 0, min(_LONGEST, place)
        while length < most and text[place - 1 - length] == known[-1 - length]:
            length += 1
        return length

    def _at_cursor(self) -> list[Guess]:
        text, cursor, gap = self._text, self._cursor, self._gap
        if gap == 0:
            return [Guess(Kind.CONTINUE, text, cursor, self._run, 0)] if cursor < len(text) else []
        kinds = [(Kind.INSERT, cursor)]
        if gap <= 16:
            kinds.append((Kind.SUBSTITUTE, cursor + gap))
        if gap > 1:
            kinds.append((Kind.SKIP, cursor + 1))
        detail = _gap_bucket(gap)
        return [
            Guess(kind, text, place, self._matched(text, place), detail)
            for kind, place in kinds
            if place < len(text)
        ]

    def _matching(self) -> list[Guess]:
        levels: dict[int, list[tuple[Kind, Sequence[int], int]]] = {}
        latest = self._text[-MAX_NGRAM:]
        for text, offset, segment in self._segments:
            in_base = text is self._text and offset == self._low
            for number, match in enumerate(segment.matches(latest)):
                if in_base:
                    places = match.around(self._cursor - offset, _SCAN // 3, _SCAN - _SCAN // 3)
                else:
                    places = match.positions[max(match.start, match.end - _SCAN // 2) : match.end]
                for place in places:
                    kind = self._kind(place + offset) if in_base else Kind.ELSEWHERE
                    length = match.length if number else self._matched(text, place + offset)
                    levels.setdefault(length, []).append((kind, text, place + offset))
        for place in {*first(self._tail.pair_places(), 8), *first(self._tail.places(), 8)}:
            place += self._answer_start
            levels.setdefault(self._matched(self._text, place), []).append((Kind.ANSWER, self._text, place))
        return list(self._most_likely(levels))

    def _kind(self, place: int) -> Kind:
        if place <= self._cursor:
            return Kind.BEHIND
        return Kind.NEAR if place - self._cursor < _NEAR else Kind.AHEAD

    def _most_likely(self, levels: dict[int, list[tuple[Kind, Sequence[int], int]]]) -> list[Guess]:
        found: list[Guess] = []
        tokens: set[int] = set()
        for length in sorted(levels, reverse=True):
            if len(tokens) >= _ENOUGH:
                break
            places = [entry for entry in levels[length] if entry[2] < len(entry[1])]
            counts = Counter(text[place] for _, text, place in places)
            for kind, text, place in places:
                found.append(Guess(kind, text, place, length, _share(counts[text[place]], len(places))))
            tokens.update(counts)
        return found

    def _learn(self, ids: list[int]) -> None:
        hazards, ranked = self._hazards, self._guesses()
        hit: Guess | None = None
        alone = [(hazards.first(guess), guess) for _, guess in ranked]
        for place, (probability, guess) in enumerate(alone):
            came = guess.text[guess.place] == ids[0]
            hazards.count_first(guess, came)
            if hit is None:
                hazards.count_ranked(place, probability, came)
            if came:
                hit = guess
        if hit is None:
            self._gap, self._run = self._gap + len(ids), 0
            return
        depth = self._count_chain(hit, ids)
        self._move(hit, depth, len(ids))

    def _count_chain(self, guess: Guess, ids: list[int]) -> int:
        counts = self._hazards.further(guess.kind, guess.length)
        depth = 1
        for token, guessed in zip(ids[1:], guess.text[guess.place + 1 : guess.place + len(ids)]):
            row = counts[DEPTH_BUCKETS[min(depth, len(DEPTH_BUCKETS) - 1)]]
            row[1] += 1.0
            if token != guessed:
                break
            row[0] += 1.0
            depth += 1
        return depth

    def _move(self, guess: Guess, depth: int, count: int) -> None:
        in_base = guess.text is self._text and self._low <= guess.place <= self._high
        far = guess.kind in (Kind.BEHIND, Kind.AHEAD)
        if not in_base or (far and guess.length + depth < _FAR_MATCH):
            self._gap, self._run = self._gap + count, 0
            return
        before = self._run if guess.kind == Kind.CONTINUE else guess.length
        self._cursor, self._gap = guess.place + depth, count - depth
        self._run = before + depth if self._gap == 0 else 0


def _gap_bucket(gap: int) -> int:
    for bucket, most in enumerate((1, 2, 3, 5, 9, 29)):
        if gap <= most:
            return bucket
    return 6


def _share(count: int, of: int) -> int:
    """Bucket of the share that one token has among the places of one matched length."""
    if of <= 3:
        return 7 if of == 1 else 7 + count
    share = count / of
    for bucket, most in enumerate((0.1, 0.2, 0.35, 0.5, 0.75, 0.999)):
        if share < most:
            return bucket
    return 6

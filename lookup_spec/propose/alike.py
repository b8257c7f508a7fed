"""New text that is like text that is there, but for the names in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

from lookup_spec.propose.guess import LONGEST, Guess, Kind
from lookup_spec.propose.retokenizer import Retokenizer
from lookup_spec.propose.shaped import NAME, NUMBER, Shaped, ShapedSegment

_GRAM = 8
_PLACES = 6
_WORDS = 30
_SEAM = 6
_COPIED = 32
_READ = 64
_OLDEST = 3
_PARTIAL = "\ufffd"  # how a token that holds part of a character is shown


class _Place(NamedTuple):
    """A place in a text before which words stand that are like the latest ones.

    Attributes:
        length: how many.
        equal: how many of them are the same.
        since: how many at the end are the same, behind one that is not.
        text: where it is.
        word: the next word there.
    """

    length: int
    equal: int
    since: int
    text: Shaped
    word: int


class Alike:
    """Finds places before which the latest words stand but for some names, and says how these go on here.

    The names in which they differ are changed in what follows there, too: after ``def get_a(x): return x`` and
    ``def get_b(y): return`` comes ``y``. This is parameterized matching (Baker, 1993) as far as a proposal needs
    it: the shape of the latest words is looked up, then names are bound from left to right.

    Args:
        base: the text that the answer is expected to follow.
        ids: its tokens.
        known: the text so far, prompt and answer; it grows, and this object only reads it.
        retokenizer: knows the tokenizer.
    """

    def __init__(self, base: ShapedSegment, ids: Sequence[int], known: list[int], retokenizer: Retokenizer) -> None:
        self._base, self._ids, self._known, self._retokenizer = base, ids, known, retokenizer
        self._answer = Shaped()
        self._start = self._read = len(known)
        self._places: dict[tuple[int, ...], list[int]] = {}
        self._indexed = _GRAM

    def guesses(self, cursor: int) -> list[Guess]:
        """How the text goes on where most is alike before it: one way at most.

        Args:
            cursor: where the answer stands in the base, roughly.
        """
        self._catch_up()
        place = max(self._find(cursor), key=itemgetter(0, 1), default=None)
        guess = None if place is None else self._guess(place)
        return [] if guess is None else [guess]

    def _catch_up(self) -> None:
        new = self._known[self._read :]
        if len(new) > _READ:  # most of it was copied, and that stands in the base
            self._answer, self._places, self._indexed = Shaped(), {}, _GRAM
            self._start = len(self._known) - _READ
            new = new[-_READ:]
        self._read = len(self._known)
        self._answer.extend(self._retokenizer.pieces(new))
        shapes, places = self._answer.shapes, self._places
        for word in range(self._indexed, len(shapes)):  # the last word may yet grow, so nothing ends with it
            places.setdefault(tuple(shapes[word - _GRAM : word]), []).append(word)
        self._indexed = max(_GRAM, len(shapes))

    def _find(self, cursor: int) -> Iterator[_Place]:
        shapes = self._answer.shapes
        if len(shapes) < _GRAM:
            return
        matches = self._base.index.matches(shapes)
        if matches:
            for word in matches[0].around(self._base.word(cursor), _PLACES // 2, _PLACES // 2):
                yield from self._compare(self._base, word)
        for word in self._places.get(tuple(shapes[-_GRAM:]), [])[-_PLACES:]:
            yield from self._compare(self._answer, word)

    def _compare(self, text: Shaped, word: int) -> Iterator[_Place]:
        """The place before a word, unless too little there is alike, or all of it is the same."""
        shapes, words = text.shapes, text.words
        latest_shapes, latest_words = self._answer.shapes, self._answer.words
        length = equal = 0
        since = -1
        most = min(LONGEST, word, len(latest_words))
        while length < most and shapes[word - 1 - length] == latest_shapes[-1 - length]:
            if words[word - 1 - length] == latest_words[-1 - length]:
                equal += 1
            elif since < 0:
                since = length
            length += 1
        if length >= _GRAM and since >= 0 and word < len(words):
            yield _Place(length, equal, since, text, word)

    def _bind(self, place: _Place) -> tuple[dict[str, str], str]:
        """What the names there are called here, and what is missing of the last word."""
        start, end = place.word - place.length, place.word
        theirs, shapes = place.text.words[start:end], place.text.shapes[start:end]
        ours = self._answer.words[-place.length :]
        named = [shape in (NAME, NUMBER) for shape in shapes]
        bound = {their: our for their, our, name in zip(theirs[:-1], ours, named) if name}  # noqa: B905 - all but the last word
        whole = bound.get(theirs[-1], theirs[-1])
        if whole != ours[-1] and whole.startswith(ours[-1]):
            return bound, whole[len(ours[-1]) :]
        if named[-1]:
            bound[theirs[-1]] = ours[-1]
        return bound, ""

    def _guess(self, place: _Place) -> Guess | None:
        """What comes at a place, names changed; None if that cannot be encoded."""
        text, detail = place.text, min(place.since, _OLDEST)
        bound, rest = self._bind(place)
        coming = text.words[place.word : place.word + _WORDS]
        words = [bound.get(word, word) for word in coming]
        tokens, offset = (self._ids, 0) if text is self._base else (self._known, self._start)
        # Only what is changed, and what shares tokens with it, is encoded; from there on tokens are copied.
        changed = [n for n, (word, theirs) in enumerate(zip(words, coming, strict=True)) if word != theirs]
        least = changed[-1] + 1 if changed else 0
        seam, token = text.seam(place.word + least, place.word + least + _SEAM)
        new = rest + "".join(words[: seam - place.word])
        if not new:
            return Guess(Kind.SYNTAX, tokens, offset + token, place.length, detail)
        ids = [] if _PARTIAL in new else self._retokenizer.encode(new)
        if not ids:
            return None
        ids += tokens[offset + token : offset + token + _COPIED]
        return Guess(Kind.SYNTAX, ids, 0, place.length, detail + _OLDEST + 1)

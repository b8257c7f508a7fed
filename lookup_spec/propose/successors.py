"""What the target would have said after drafts that it refused: guesses where nothing can be looked up."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from lookup_spec.propose.guess import Guess, Kind
from lookup_spec.propose.seen import Seen, rejected

WORDS = 4
"""Kept of the target's likeliest next tokens after one token."""

EDGES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.97)
"""Probabilities are told apart by where among these they lie; below the first, a token is not worth a guess."""

MOST_KEYS = 1 << 14

_REFUSED = 3
_NO_TOKEN = -1
_EDGES = np.array(EDGES, dtype=np.float32)

_Key = int | tuple[int, int]
_Words = tuple[tuple[int, int], ...]


class Source(IntEnum):
    """After what the target said it; the length of a guess of this kind."""

    BESIDE = 0
    """After what was guessed in the place of the last token."""
    TOKEN = 1
    """After the last token, behind other text."""
    PAIR = 2
    """After the last two tokens."""


class Successors:
    """Tokens that the target thought likely after others, by the last token and by the last two.

    A refused draft is no waste: the target has told what it would have said after it, and much of that it says a little
    later (token recycling, after Luo et al. 2024). Later ones replace earlier ones. Of two generations, each of at most
    half of ``MOST_KEYS`` keys, the older is forgotten when the younger is full.
    """

    def __init__(self) -> None:
        self._young: dict[_Key, _Words] = {}
        self._old: dict[_Key, _Words] = {}
        self._beside: _Words = ()

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def take(self, seen: Seen | None) -> None:
        """Takes in what was said about the last tree; with None nothing is known about it."""
        self._beside = ()
        if seen is None:
            return
        tree, tokens, parents = seen.tree, seen.tree.tokens, seen.tree.parents
        nodes = rejected(tree, seen.path)
        words = _words(seen.ids, seen.probabilities)
        # Backwards, so that of two nodes that tell about the same tokens the likelier one is believed.
        for node, said in zip(reversed(nodes), reversed(words), strict=True):
            self._keep(tokens[node], said)
            self._keep((tokens[parents[node]], tokens[node]), said)
        last = seen.path[-1]
        beside = [said[0] for node, said in zip(nodes, words, strict=True) if parents[node] == last and said]
        self._beside = tuple(dict(reversed(beside[:_REFUSED])).items())

    def _keep(self, key: _Key, words: _Words) -> None:
        if key not in self._young and len(self._young) >= MOST_KEYS // 2:
            self._old, self._young = self._young, {}
        self._young[key] = words

    def pending(self, known: Sequence[int]) -> list[Guess]:
        """What may follow the text so far, of at least one token."""
        found = self.after(known[-2] if len(known) > 1 else _NO_TOKEN, known[-1])
        if found and found[0].length == Source.PAIR:
            return found
        return found + [_guess(Source.BESIDE, *word) for word in self._beside]

    def after(self, before: int, token: int) -> list[Guess]:
        """What may follow two tokens, the likeliest first."""
        words = self._known((before, token))
        if words:
            return [_guess(Source.PAIR, *word) for word in words]
        return [_guess(Source.TOKEN, *word) for word in self._known(token)]

    def _known(self, key: _Key) -> _Words:
        words = self._young.get(key)
        return self._old.get(key, ()) if words is None else words


def _guess(source: Source, token: int, bucket: int) -> Guess:
    return Guess(Kind.SUCCESSOR, (token,), 0, source, bucket)


def _words(ids: NDArray[np.int64], probabilities: NDArray[np.float32]) -> list[_Words]:
    """Of each row, the tokens that are worth a guess, each with the number of its probability's bucket."""
    # What is no number is worth nothing; and single precision throughout, or a value at an edge falls on either side.
    known = np.nan_to_num(probabilities[:, :WORDS].astype(np.float32), nan=0.0)
    buckets: Sequence[Sequence[int]] = np.searchsorted(_EDGES, known, side="right").tolist()
    tokens: Sequence[Sequence[int]] = ids[:, :WORDS].tolist()
    return [
        tuple((token, bucket) for token, bucket in zip(*row, strict=True) if bucket)
        for row in zip(tokens, buckets, strict=True)
    ]

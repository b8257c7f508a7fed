"""What we compare with: known ways to look drafts up, and the best that copying could do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from lookup_spec.propose.prompt import Prompt
from lookup_spec.propose.seen import Seen
from lookup_spec.propose.tree import DraftTree

MAX_MATCH = 16


class _Occurrences:
    """All places of all n-grams up to a length, in a growing text."""

    def __init__(self, longest: int) -> None:
        self.ids: list[int] = []
        self._longest = longest
        self._places: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)

    def extend(self, ids: Sequence[int]) -> None:
        for token in ids:
            self.ids.append(token)
            end = len(self.ids)
            for n in range(1, min(self._longest, end) + 1):
                self._places[tuple(self.ids[end - n : end])].append(end)

    def following(self, n: int) -> list[int]:
        """Ascending places, each the index after an n-gram equal to the last one; the last itself is not
        among them."""
        return self._places[tuple(self.ids[-n:])][:-1] if n <= len(self.ids) else []


def _context(prompt: Prompt) -> list[int]:
    """All that a proposer may copy from, the prompt last."""
    return [*(token for reference in prompt.references for token in reference.ids), *prompt.ids]


class PromptLookup:
    """Prompt lookup as transformers does it: the first place of the longest n-gram, from ``ngram`` tokens
    down.

    Args:
        tokens: draft length; None drafts as many as allowed.
        ngram: longest n-gram to look for.
    """

    runner_ups = 0

    def __init__(self, tokens: int | None = 10, ngram: int = 2) -> None:
        self._tokens, self._ngram = tokens, ngram
        self._text = _Occurrences(ngram)

    def begin(self, prompt: Prompt) -> None:
        self._text.extend(_context(prompt))

    def observe(self, ids: Sequence[int], seen: Seen | None = None) -> None:  # noqa: ARG002 - the protocol's signature
        self._text.extend(ids)

    def propose(self, limit: int) -> DraftTree:
        length = limit if self._tokens is None else min(limit, self._tokens)
        ids = self._text.ids
        for n in range(self._ngram, 0, -1):
            places = self._text.following(n)
            if places:
                return DraftTree.chain(ids[-1], ids[places[0] : places[0] + length], "first")
        return DraftTree.root(ids[-1])


class LongestMatch:
    """The most recent place of the longest suffix of the text, up to ``MAX_MATCH`` tokens."""

    runner_ups = 0

    def __init__(self) -> None:
        self._text = _Occurrences(MAX_MATCH)

    def begin(self, prompt: Prompt) -> None:
        self._text.extend(_context(prompt))

    def observe(self, ids: Sequence[int], seen: Seen | None = None) -> None:  # noqa: ARG002 - the protocol's signature
        self._text.extend(ids)

    def propose(self, limit: int) -> DraftTree:
        ids = self._text.ids
        for n in range(MAX_MATCH, 0, -1):
            places = self._text.following(n)
            if places:
                return DraftTree.chain(ids[-1], ids[places[-1] : places[-1] + limit], "longest")
        return DraftTree.root(ids[-1])


class CopyOracle:
    """Knows the answer and drafts the longest part of it that stands in the text so far: the bound of one
    copy.

    Args:
        answer: what will be observed.
    """

    runner_ups = 0

    def __init__(self, answer: Sequence[int]) -> None:
        self._answer = list(answer)
        self._done = 0
        self._ids: list[int] = []
        self._places: defaultdict[int, list[int]] = defaultdict(list)

    def begin(self, prompt: Prompt) -> None:
        self._extend(_context(prompt))

    def observe(self, ids: Sequence[int], seen: Seen | None = None) -> None:  # noqa: ARG002 - the protocol's signature
        self._done += len(ids)
        self._extend(ids)

    def _extend(self, ids: Sequence[int]) -> None:
        for place, token in enumerate(ids, len(self._ids)):
            self._places[token].append(place)
        self._ids.extend(ids)

    def propose(self, limit: int) -> DraftTree:
        coming, ids = self._answer[self._done : self._done + limit], self._ids
        best = 0
        for place in self._places.get(coming[0], ()) if coming else ():
            # A copy that is not longer than the best is not worth counting.
            if ids[place : place + best + 1] == coming[: best + 1]:
                length = best + 1
                while length < len(coming) and ids[place + length : place + length + 1] == [coming[length]]:
                    length += 1
                best = length
                if best == len(coming):
                    break
        return DraftTree.chain(ids[-1], coming[:best], "oracle")


class SuffixDecoding:
    """Arctic's suffix decoding, on its own trees of this request's text; needs the package
    ``arctic_inference``.

    Raises:
        ImportError: the package is not installed.
    """

    runner_ups = 0

    _DEPTH = 64

    def __init__(self) -> None:
        from arctic_inference.suffix_decoding import SuffixDecodingCache

        self._cache: Any = SuffixDecodingCache(max_tree_depth=self._DEPTH, max_cached_requests=0)
        self._ids: list[int] = []

    def begin(self, prompt: Prompt) -> None:
        self._ids = _context(prompt)
        self._cache.start_request("request", np.array(self._ids, dtype=np.int32))

    def observe(self, ids: Sequence[int], seen: Seen | None = None) -> None:  # noqa: ARG002 - the protocol's signature
        self._ids.extend(ids)
        self._cache.add_active_response("request", np.array(ids, dtype=np.int32))

    def propose(self, limit: int) -> DraftTree:
        draft = self._cache.speculate(
            "request", np.array(self._ids[-self._DEPTH :], dtype=np.int32), max_spec_tokens=limit,
            max_spec_factor=4.0, max_spec_offset=8.0, min_token_prob=0.05, use_tree_spec=True,
        )  # fmt: skip
        return DraftTree(
            (self._ids[-1], *draft.token_ids),
            (-1, *(parent + 1 for parent in draft.parents)),
            (1.0, *draft.probs),
            ("", *(["suffix"] * len(draft.token_ids))),
        )

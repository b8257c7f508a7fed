"""The draft tree: what is asked of one forward pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DraftTree:
    """Guessed continuations, merged where they agree.

    Node 0 is the pending token: already chosen, not yet in the KV cache. Every other node is a guess that
    follows its parent. Nodes stand in order of falling path probability, so the first ``k`` nodes are again a
    valid tree, the best one of that size. The one-node tree is plain decoding.

    Attributes:
        tokens: token id of each node, ``[n]``.
        parents: index of each node's parent, ``[n]``; ``parents[0] == -1`` and ``parents[i] < i``.
        probabilities: estimated probability that the whole path to the node is accepted, ``[n]``;
            ``probabilities[0] == 1.0``.
        sources: name of what proposed each node, ``[n]``; ``sources[0] == ""``.
    """

    tokens: tuple[int, ...]
    parents: tuple[int, ...]
    probabilities: tuple[float, ...]
    sources: tuple[str, ...]

    @classmethod
    def root(cls, pending: int) -> DraftTree:
        """The tree that drafts nothing."""
        return cls((pending,), (-1,), (1.0,), ("",))

    @classmethod
    def chain(cls, pending: int, draft: Sequence[int], source: str, probability: float = 1.0) -> DraftTree:
        """A tree of one branch."""
        n = len(draft)
        return cls(
            (pending, *draft),
            tuple(range(-1, n)),
            (1.0, *([probability] * n)),
            ("", *([source] * n)),
        )

    def __len__(self) -> int:
        return len(self.tokens)

    def head(self, size: int) -> DraftTree:
        """The first ``size`` nodes (at least node 0)."""
        size = max(size, 1)
        if size >= len(self):
            return self
        return DraftTree(self.tokens[:size], self.parents[:size], self.probabilities[:size], self.sources[:size])

    def depths(self) -> tuple[int, ...]:
        """Distance of each node from node 0, ``[n]``."""
        depths: list[int] = []
        for parent in self.parents:
            depths.append(depths[parent] + 1 if parent >= 0 else 0)
        return tuple(depths)

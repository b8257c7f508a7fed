"""What the target said about a tree that it checked."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookup_spec.propose.tree import DraftTree


@dataclass(frozen=True, slots=True)
class Seen:
    """The target's likeliest next tokens after each node that was refused.

    Those after accepted nodes are left out: what came there stands in the text, and a long copy refuses nothing, so
    that nothing has to be worked out for it. The model's own distribution, before temperature, penalties and the like.

    Attributes:
        tree: what was checked.
        path: the accepted nodes, node 0 first.
        ids: the likeliest next tokens after each of ``rejected(tree, path)``, best first, ``[rejected, k]``.
        probabilities: theirs, ``[rejected, k]``; not finite where the model gave no numbers.
    """

    tree: DraftTree
    path: tuple[int, ...]
    ids: NDArray[np.int64]
    probabilities: NDArray[np.float32]


def rejected(tree: DraftTree, path: Collection[int]) -> list[int]:
    """The nodes off the accepted path, in their order."""
    taken = set(path)
    return [node for node in range(len(tree)) if node not in taken]

"""What the target said about a tree that it checked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookup_spec.propose.tree import DraftTree


@dataclass(frozen=True, slots=True)
class Seen:
    """The target's likeliest next tokens after each node of a tree, accepted or not.

    The model's own distribution, before temperature, penalties and the like.

    Attributes:
        tree: what was checked.
        ids: the likeliest next tokens after each node, best first, ``[len(tree), k]``.
        probabilities: theirs, ``[len(tree), k]``; not finite where the model gave no numbers.
    """

    tree: DraftTree
    ids: NDArray[np.int64]
    probabilities: NDArray[np.float32]

"""Walking a draft tree along the target's own choices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lookup_spec.propose.tree import DraftTree


@dataclass(frozen=True, slots=True)
class Walk:
    """What one verified tree yields.

    Attributes:
        path: accepted nodes in order, starting with node 0; these rows enter the KV cache.
        tokens: the target's choice after each node of ``path``, same length. The last is the new pending
            token.
    """

    path: tuple[int, ...]
    tokens: tuple[int, ...]


def walk(tree: DraftTree, choose: Callable[[int], int]) -> Walk:
    """Follows, from node 0, the child that equals the target's choice, until none does.

    Lookup drafts are point masses, so "draft accepted" and "draft equals the choice" are the same event and
    no acceptance arithmetic is needed. ``choose`` is asked once per accepted node, in order, and for no
    other: what it sees is what plain decoding would have seen.

    Args:
        tree: the verified tree.
        choose: gives the target's token after a node (an index into ``tree``).
    """
    children = {
        (parent, token): node for node, (parent, token) in enumerate(zip(tree.parents, tree.tokens, strict=True))
    }
    path: list[int] = []
    tokens: list[int] = []
    node: int | None = 0
    while node is not None:
        token = choose(node)
        path.append(node)
        tokens.append(token)
        node = children.get((node, token))
    return Walk(tuple(path), tuple(tokens))

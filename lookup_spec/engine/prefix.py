"""Keys and values of ended texts, kept for texts that begin alike."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lookup_spec.model.cache import KVCache, KVRows

Ids: TypeAlias = NDArray[np.int32]


def as_ids(tokens: Sequence[int]) -> Ids:
    """Token ids in the form in which texts are compared."""
    return np.asarray(tokens, np.int32)


def common_prefix(one: Ids, other: Ids) -> int:
    """How many tokens two texts have in common at their beginning."""
    size = min(len(one), len(other))
    different = one[:size] != other[:size]
    return int(different.argmax()) if different.any() else size


def begin_alike(one: Ids, other: Ids, size: int) -> bool:
    """Whether two texts have so many tokens, at least 1, in common at their beginning."""
    if size > min(len(one), len(other)) or one[size - 1] != other[size - 1]:
        return False  # seen at one token for most of many texts that run together
    return bool((one[:size] == other[:size]).all())


@dataclass(eq=False, slots=True)
class _Node:
    """A stretch of text that follows its parent's; of two children of one node, no two begin with the same token."""

    key: tuple[str, int]  # tenant and first token: the node's place among its parent's children
    ids: Ids
    rows: KVRows
    parent: _Node | None
    children: dict[tuple[str, int], _Node] = field(default_factory=dict)


class PrefixCache:
    """A tree of texts by tenant, in which each stretch that several texts share is held once.

    When room is short, the ends of texts that were not used for long go first, and what many begin with stays: a
    document outlives the instructions and answers that followed it. (A radix tree over tokens, after Zheng et al. 2024,
    "SGLang: Efficient Execution of Structured Language Model Programs".)

    The tenant is part of every place in the tree, so one tenant's texts are never found for another.

    Args:
        max_tokens: most tokens to keep; 0 keeps none.
    """

    def __init__(self, max_tokens: int) -> None:
        self.max_tokens = max_tokens
        self._heads: dict[tuple[str, int], _Node] = {}
        # A path is touched from its end to its head, so a parent is always more recent than its children.
        self._recent: OrderedDict[_Node, None] = OrderedDict()
        self._tokens = 0

    @property
    def tokens(self) -> int:
        """Tokens kept."""
        return self._tokens

    def match(self, tenant: str, ids: Ids) -> list[KVRows]:
        """Rows of the longest beginning of a text that this tenant has here, in order.

        They are good until the tree changes; copy them before that.
        """
        path, length = self._walk(tenant, ids)
        self._touch(path)
        found = []
        for node in path:
            found.append(node.rows if len(node.ids) <= length else node.rows.part(0, length))
            length -= len(node.ids)
        return found

    def put(self, tenant: str, ids: Ids, cache: KVCache) -> None:
        """Keeps what is new of a text. The cache, which holds its first rows, is empty afterwards."""
        ids = ids[: min(cache.length, self.max_tokens)]
        path, length = self._walk(tenant, ids)
        new = len(ids) - length
        if path and new:
            path[-1] = self._upper(path[-1], length - sum(len(node.ids) for node in path[:-1]))
        self._touch(path)
        if new:
            self.shrink(self.max_tokens - new)  # never the path itself, which fits and was just used
            parent = path[-1] if path else None
            node = _Node((tenant, int(ids[length])), ids[length:], cache.detach(length, len(ids)), parent)
            self._children(parent)[node.key] = node
            self._recent[node] = None
            self._tokens += new
            self._touch(path)
        cache.clear()

    def shrink(self, tokens: int) -> None:
        """Forgets what was not used for longest, until no more than so many tokens are kept."""
        while self._tokens > max(tokens, 0):
            node, _ = self._recent.popitem(last=False)
            del self._children(node.parent)[node.key]
            self._tokens -= len(node.ids)

    def _walk(self, tenant: str, ids: Ids) -> tuple[list[_Node], int]:
        """The nodes along a text, of which the last may go another way at some point, and how far they go together."""
        path: list[_Node] = []
        length = 0
        while length < len(ids):
            node = self._children(path[-1] if path else None).get((tenant, int(ids[length])))
            if node is None:
                break
            path.append(node)
            common = common_prefix(node.ids, ids[length:])
            length += common
            if common < len(node.ids):
                break
        return path, length

    def _upper(self, node: _Node, length: int) -> _Node:
        """The first ``length`` tokens of a node as a node of its own, which is the node itself if it has no more."""
        if length == len(node.ids):
            return node
        head, tail = node.rows.part(0, length).clone(), node.rows.part(length, len(node.ids)).clone()
        upper = _Node(node.key, node.ids[:length], head, node.parent)
        self._children(node.parent)[upper.key] = upper
        node.key = (node.key[0], int(node.ids[length]))
        node.ids, node.rows, node.parent = node.ids[length:], tail, upper
        upper.children[node.key] = node
        self._recent[upper] = None
        return upper

    def _children(self, node: _Node | None) -> dict[tuple[str, int], _Node]:
        return self._heads if node is None else node.children

    def _touch(self, path: Sequence[_Node]) -> None:
        for node in reversed(path):
            self._recent.move_to_end(node)

"""Computing rows so that none depends, to the last bit, on what else is in the pass.

Sums of floating-point numbers depend on their order, and kernels choose the order by the shape of the whole. Here each
row's sums have an order of their own: keys stand in the order of the text and are summed in whole blocks, so that what
is masked only adds zeros behind. Linear layers are given numbers of rows for which their kernels go the same way
(``model/padding.py``).

Whether a machine's kernels keep this is not taken on trust: ``model/steady_check.py`` tries it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lookup_spec.model.cache import BLOCK, in_blocks

_ROWS = 32  # attended at a time: scores over a long context stay near the processor
_LEAST = 8  # rows that share keys, query heads of a group included: narrower products take other kernels


@dataclass(frozen=True, slots=True)
class Chain:
    """Rows of a draft tree that follow each other, and those before them.

    Attributes:
        path: all rows from the cache on, in the order of the text.
        own: as many of the last ones belong to this chain; the others to the chains that it left.
    """

    path: tuple[int, ...]
    own: int


def chains(parents: Sequence[int]) -> list[Chain]:
    """A tree as chains, each row in exactly one: a node's first child goes on with its chain, others begin one.

    Args:
        parents: of each row; -1 directly follows the cache.
    """
    paths: list[list[int]] = []
    owned: list[int] = []
    ends: dict[int, int] = {}  # the last row of each chain
    place: dict[int, tuple[int, int]] = {}  # chain and length of the path up to a row
    for row, parent in enumerate(parents):
        number = ends.pop(parent, None) if parent >= 0 else None
        if number is None:
            number = len(paths)
            before, length = place[parent] if parent >= 0 else (0, 0)
            paths.append(paths[before][:length] if length else [])
            owned.append(0)
        paths[number].append(row)
        owned[number] += 1
        ends[row] = number
        place[row] = number, len(paths[number])
    return [Chain(tuple(path), own) for path, own in zip(paths, owned, strict=True)]


class Lines:
    """The texts that end in a tree's chains, side by side: keys gathered in this order serve all rows at once.

    First come the whole blocks of the cache, with which all texts begin. Then comes, chain by chain, what each goes on
    with, in as many blocks as the longest needs; what is behind its end is hidden.

    Args:
        parents: of each row; -1 directly follows the cache.
        cached: committed tokens.

    Attributes:
        order: of the keys, by their place in the cache with all rows behind it, ``[shared + chains * tail]``; None if
            they stand like this already, in whole blocks.
        shared: keys that all texts begin with.
        tail: keys that each goes on with.
    """

    def __init__(self, parents: Sequence[int], cached: int) -> None:
        self._chains = chains(parents)
        self._cached = cached
        self.shared = cached - cached % BLOCK
        self.tail = in_blocks(max(cached + len(chain.path) for chain in self._chains)) - self.shared
        self.order = self._order() if len(self._chains) > 1 else None

    def _order(self) -> Tensor:
        order = np.zeros((len(self._chains), self.tail), np.int64)  # anything will do for what is hidden
        begun = self._cached - self.shared
        order[:, :begun] = np.arange(self.shared, self._cached)
        for places, chain in zip(order, self._chains, strict=True):
            places[begun : begun + len(chain.path)] = self._cached + np.asarray(chain.path)
        return torch.from_numpy(np.concatenate([np.arange(self.shared), order.reshape(-1)]))

    def mask(self, depths: Sequence[int], window: int | None) -> Tensor:
        """0 where a row sees a key and minus infinity where it does not, ``[rows, shared + chains * tail]`` float32.

        Args:
            depths: each row's distance behind the cache.
            window: a row sees positions less than this far back; None sees all.
        """
        count = len(self._chains)
        chain_of = np.empty(len(depths), np.int64)
        for number, chain in enumerate(self._chains):
            chain_of[list(chain.path[-chain.own :])] = number
        tails = np.tile(np.arange(self.shared, self.shared + self.tail), count)
        distance = (self._cached + np.asarray(depths))[:, None] - np.concatenate([np.arange(self.shared), tails])
        hidden = distance < 0 if window is None else (distance < 0) | (distance >= window)
        hidden[:, self.shared :] |= chain_of[:, None] != np.repeat(np.arange(count), self.tail)
        return torch.zeros(hidden.shape).masked_fill_(torch.from_numpy(hidden), float("-inf"))


def steady_attention(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    lines: Lines,
    mask: Tensor,
    scaling: float,
    softcap: float | None,
) -> Tensor:
    """Scaled-dot-product attention in which a row's result depends on its own query, keys and values alone.

    Args:
        query: ``[query heads, rows, dim]`` float32; heads that share keys lie together.
        keys: ``[key heads, length, dim]`` float32, whole blocks, finite throughout: the cache with all rows behind it.
        values: ``[key heads, length, value dim]`` float32, likewise.
        lines: in which order rows see them.
        mask: of the lines.
        scaling: of the scores.
        softcap: bound of the scores, or None.

    Returns:
        ``[query heads, rows, value dim]``.
    """
    if lines.order is not None:
        keys, values = keys[:, lines.order], values[:, lines.order]
    mask = mask.to(query.device)
    parts = [
        _attend(query[:, start : start + _ROWS], keys, values, lines, mask[start : start + _ROWS], scaling, softcap)
        for start in range(0, query.shape[1], _ROWS)
    ]
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)


def _attend(
    query: Tensor, keys: Tensor, values: Tensor, lines: Lines, mask: Tensor, scaling: float, softcap: float | None
) -> Tensor:
    heads, rows, dim = query.shape
    shared, length = keys.shape[0], keys.shape[1]
    groups = heads // shared
    padding = max(-(-_LEAST // groups) - rows, 0)
    if padding:  # by rows that see what the last one does
        query = torch.cat([query, query[:, -1:].expand(-1, padding, -1)], dim=1)
        mask = torch.cat([mask, mask[-1:].expand(padding, -1)])
    scores = (query * scaling).reshape(shared, -1, dim) @ keys.transpose(1, 2)
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    scores.view(shared, groups, -1, length).add_(mask)
    # A product over all keys would group its sums by their number; block after block the order is always the same.
    blocks = torch.softmax(scores, dim=-1).view(shared, -1, length // BLOCK, BLOCK).transpose(1, 2)
    sums = [
        _sum(torch.bmm(block, value.unflatten(0, (-1, BLOCK))), lines)
        for block, value in zip(blocks, values, strict=True)
    ]
    return torch.stack(sums).view(heads, rows + padding, -1)[:, :rows]


def _sum(products: Tensor, lines: Lines) -> Tensor:
    """Adds up blocks ``[blocks, rows, value dim]``, each at its place in the row's own text."""
    if lines.order is not None:
        begun = lines.shared // BLOCK
        # All chains but its own are zero for a row.
        ends = products[begun:].unflatten(0, (-1, lines.tail // BLOCK)).sum(0)
        products = torch.cat([products[:begun], ends])
    return products.sum(0)

"""Keys and values of one session, and the only two ways their number changes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

_BLOCK = 64  # capacity comes in multiples of this many tokens


@dataclass(slots=True)
class _Layer:
    keys: Tensor  # [heads, capacity, dim]
    values: Tensor  # [heads, capacity, dim]


class KVCache:
    """Committed keys and values, with room behind them for the rows of the step that is running.

    A step writes all its rows, right or wrong, behind the committed ones; :meth:`commit` then keeps the accepted
    rows and forgets the others. Nothing else moves :attr:`length`.

    Args:
        capacity: tokens to make room for at first; it grows by itself.
        dtype: of the stored tensors; None keeps what the model produces.
    """

    def __init__(self, capacity: int = 0, dtype: torch.dtype | None = None) -> None:
        self._layers: dict[int, _Layer] = {}
        self._capacity = _rounded_up(capacity)
        self._dtype = dtype
        self._length = 0
        self._written = 0

    @property
    def length(self) -> int:
        """Committed tokens."""
        return self._length

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return sum(layer.keys.nbytes + layer.values.nbytes for layer in self._layers.values())

    def write(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Puts a step's rows behind the committed ones.

        Args:
            layer: index of the layer.
            keys: ``[heads, rows, dim]``.
            values: ``[heads, rows, dim]``; ``dim`` may differ from the keys'.

        Returns:
            Views of keys and values with these rows at the end, ``[heads, length + rows, dim]``.
        """
        rows = keys.shape[1]
        end = self._length + rows
        store = self._layer(layer, keys, values, end)
        store.keys[:, self._length : end] = keys
        store.values[:, self._length : end] = values
        self._written = rows
        return store.keys[:, :end], store.values[:, :end]

    def commit(self, path: Sequence[int]) -> None:
        """Keeps some rows of the last step, in this order, and forgets its others.

        Args:
            path: ascending indices among the rows just written.

        Raises:
            ValueError: a row was not written by the last step, or the order is not ascending.
        """
        if any(a >= b for a, b in itertools.pairwise(path)) or (path and not 0 <= path[0] <= path[-1] < self._written):
            raise ValueError(f"path {list(path)} does not name ascending rows among the {self._written} written")
        straight = next((i for i, row in enumerate(path) if row != i), len(path))
        if straight < len(path):
            start = self._length + straight
            end = self._length + len(path)
            for store in self._layers.values():
                rows = torch.tensor(path[straight:], device=store.keys.device) + self._length
                store.keys[:, start:end] = store.keys[:, rows]
                store.values[:, start:end] = store.values[:, rows]
        self._length += len(path)
        self._written = 0

    def truncate(self, length: int) -> None:
        """Forgets everything behind the first ``length`` tokens.

        Raises:
            ValueError: the cache is shorter than that.
        """
        if not 0 <= length <= self._length:
            raise ValueError(f"cannot truncate a cache of {self._length} tokens to {length}")
        self._length = length
        self._written = 0

    def _layer(self, index: int, keys: Tensor, values: Tensor, needed: int) -> _Layer:
        store = self._layers.get(index)
        if needed > self._capacity:
            self._capacity = _rounded_up(max(needed, self._capacity + self._capacity // 2))
        if store is None:
            store = _Layer(self._room(keys), self._room(values))
            self._layers[index] = store
        elif store.keys.shape[1] < needed:
            grown = _Layer(self._room(keys), self._room(values))
            grown.keys[:, : self._length] = store.keys[:, : self._length]
            grown.values[:, : self._length] = store.values[:, : self._length]
            store.keys, store.values = grown.keys, grown.values
        return store

    def _room(self, like: Tensor) -> Tensor:
        heads, _, dim = like.shape
        return like.new_empty((heads, self._capacity, dim), dtype=self._dtype or like.dtype)


def _rounded_up(tokens: int) -> int:
    return -(-tokens // _BLOCK) * _BLOCK

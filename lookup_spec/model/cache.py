"""Keys and values of one session, and the only ways their number changes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from weakref import ReferenceType, ref

import torch
from torch import Tensor

BLOCK = 64
"""Room comes in multiples of this many tokens."""


@dataclass(frozen=True, slots=True)
class KVRows:
    """Keys and values of a stretch of tokens, apart from the cache that they were computed in.

    Attributes:
        layers: by layer, keys and values, each ``[heads, length, dim]``.
        length: tokens.
    """

    layers: Mapping[int, tuple[Tensor, Tensor]]
    length: int

    def part(self, start: int, end: int) -> KVRows:
        """The rows ``start .. end-1``; shares memory with these."""
        layers = {index: (keys[:, start:end], values[:, start:end]) for index, (keys, values) in self.layers.items()}
        return KVRows(layers, end - start)

    def clone(self) -> KVRows:
        """The same rows in memory of their own."""
        layers = {index: (keys.clone(), values.clone()) for index, (keys, values) in self.layers.items()}
        return KVRows(layers, self.length)


@dataclass(eq=False, slots=True)
class Seat:
    """Memory at a fixed place, in which one cache at a time keeps its rows.

    Attributes:
        layers: by layer, keys and values, each ``[heads, capacity, dim]``.
        capacity: tokens.
    """

    layers: Mapping[int, tuple[Tensor, Tensor]]
    capacity: int
    _user: ReferenceType[KVCache] | None = None

    @property
    def user(self) -> KVCache | None:
        """Whose rows are here; nobody's once that cache is gone."""
        return None if self._user is None else self._user()


@dataclass(slots=True)
class _Layer:
    keys: Tensor  # [heads, capacity, dim]
    values: Tensor  # [heads, capacity, dim]


class KVCache:
    """Committed keys and values, with room behind them for the rows of the step that is running.

    A step writes all its rows, right or wrong, behind the committed ones; :meth:`commit` then keeps the accepted
    rows and forgets the others. Besides it only :meth:`append` and :meth:`truncate` move :attr:`length`.

    What a token's keys and values are depends on the tokens before it and nothing else, sliding windows or not:
    every row is kept, and a window only decides which rows are looked at. So the first rows of one text serve any
    other text that begins alike.

    Args:
        capacity: tokens to make room for at first; it grows by itself.
        dtype: of the stored tensors; None keeps what the model produces.
        cleared: memory begins as zeros, so that whole blocks can be computed with.
    """

    def __init__(self, capacity: int = 0, dtype: torch.dtype | None = None, *, cleared: bool = False) -> None:
        self._layers: dict[int, _Layer] = {}
        self._capacity = in_blocks(capacity)
        self._dtype = dtype
        self._cleared = cleared
        self._seat: Seat | None = None
        self._length = 0
        self._written = 0

    @property
    def length(self) -> int:
        """Committed tokens."""
        return self._length

    @property
    def capacity(self) -> int:
        """Tokens that there is, or will be, room for; memory is taken when rows are written."""
        return self._capacity

    @property
    def nbytes(self) -> int:
        """Memory of its own, in bytes; never more than that of :attr:`capacity` tokens, and none in a seat."""
        return 0 if self._seat else sum(layer.keys.nbytes + layer.values.nbytes for layer in self._layers.values())

    @property
    def seat(self) -> Seat | None:
        """Where the rows are, unless in memory of their own."""
        return self._seat

    def move(self, seat: Seat | None) -> None:
        """Moves the committed rows to a seat, or to memory of their own; rows behind them are lost.

        Raises:
            ValueError: somebody sits there, or it is too small.
        """
        if seat is not None and (seat.user is not None or seat.capacity < self._length):
            raise ValueError(f"a cache of {self._length} tokens cannot have a seat of {seat.capacity} that is in use")
        if seat is not None:
            there = {index: _Layer(keys, values) for index, (keys, values) in seat.layers.items()}
        elif self._length:
            there = {index: _Layer(self._room(old.keys), self._room(old.values)) for index, old in self._layers.items()}
        else:
            there = {}
        for index, layer in there.items():
            if old := self._layers.get(index):
                layer.keys[:, : self._length] = old.keys[:, : self._length]
                layer.values[:, : self._length] = old.values[:, : self._length]
            if seat is not None:
                # Whoever sat there before may have left what is not finite, and a mask hides only what is.
                layer.keys[:, self._length :] = 0
                layer.values[:, self._length :] = 0
        self._rise()
        self._layers, self._written = there, 0
        if seat is not None:
            self._seat, seat._user = seat, ref(self)

    def wrote(self, rows: int) -> None:
        """Somebody put the rows of a step straight into the seat, behind the committed ones."""
        self.reserve(self._length + rows)
        self._written = rows

    def write(self, layer: int, keys: Tensor, values: Tensor, *, whole: bool = False) -> tuple[Tensor, Tensor]:
        """Puts a step's rows behind the committed ones, in the place of rows put there before.

        Args:
            layer: index of the layer.
            keys: ``[heads, rows, dim]``.
            values: ``[heads, rows, dim]``; ``dim`` may differ from the keys'.
            whole: the views go on to the end of the last block.

        Returns:
            Views of keys and values with these rows at the end, ``[heads, length + rows, dim]``.
        """
        rows = keys.shape[1]
        end = self._length + rows
        store = self._layer(layer, keys, values, end)
        store.keys[:, self._length : end] = keys
        store.values[:, self._length : end] = values
        self._written = rows
        if whole:
            end = in_blocks(end)
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

    def reserve(self, capacity: int) -> None:
        """Makes room for at least so many tokens; a cache never shrinks."""
        self._capacity = max(self._capacity, in_blocks(capacity))

    def rows(self, start: int, end: int) -> KVRows:
        """Committed rows ``start .. end-1``; they share memory with this cache, so clone what must outlive a step.

        Raises:
            ValueError: not all of them are committed.
        """
        self._check(start, end)
        layers = {
            index: (layer.keys[:, start:end], layer.values[:, start:end]) for index, layer in self._layers.items()
        }
        return KVRows(layers, end - start)

    def append(self, rows: KVRows) -> None:
        """Copies rows that were computed elsewhere behind the committed ones; their tokens come next in the text."""
        for index, (keys, values) in rows.layers.items():
            self.write(index, keys, values)
        self._length += rows.length
        self._written = 0

    def detach(self, start: int, end: int) -> KVRows:
        """Moves rows to memory of their own and leaves the cache empty.

        Layer by layer, so that hardly more memory is needed meanwhile.

        Raises:
            ValueError: not all of them are committed.
        """
        self._check(start, end)
        layers: dict[int, tuple[Tensor, Tensor]] = {}
        while self._layers:
            index, layer = self._layers.popitem()
            layers[index] = layer.keys[:, start:end].clone(), layer.values[:, start:end].clone()
        self.clear()
        return KVRows(layers, end - start)

    def clear(self) -> None:
        """Forgets everything and gives all memory back, and the seat."""
        self._rise()
        self._layers = {}
        self._capacity = self._length = self._written = 0

    def truncate(self, length: int) -> None:
        """Forgets everything behind the first ``length`` tokens.

        Raises:
            ValueError: the cache is shorter than that.
        """
        if not 0 <= length <= self._length:
            raise ValueError(f"cannot truncate a cache of {self._length} tokens to {length}")
        self._length = length
        self._written = 0

    def _rise(self) -> None:
        if self._seat is not None:
            self._seat._user = None
        self._seat = None

    def _check(self, start: int, end: int) -> None:
        if not 0 <= start <= end <= self._length:
            raise ValueError(f"a cache of {self._length} tokens has no rows {start} to {end - 1}")

    def _layer(self, index: int, keys: Tensor, values: Tensor, needed: int) -> _Layer:
        if needed > self._capacity:
            self._capacity = in_blocks(max(needed, self._capacity + self._capacity // 2))
        if self._seat is not None and needed > self._seat.capacity:
            self.move(None)
        store = self._layers.get(index)
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
        make = like.new_zeros if self._cleared else like.new_empty
        return make((heads, self._capacity, dim), dtype=self._dtype or like.dtype)


def in_blocks(tokens: int) -> int:
    """The room that so many tokens take."""
    return -(-tokens // BLOCK) * BLOCK

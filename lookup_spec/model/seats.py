"""Memory at fixed places for a few sessions, which is what a captured graph can read."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from lookup_spec.model.cache import KVCache, KVRows, Seat

SPARE = 128
"""Rows behind every seat, for whatever a pass computes that is nobody's."""


class Seats:
    """Places for the keys and values of sessions, side by side in tensors that stay where they are.

    Args:
        like: rows of any cache, for their layers, shapes and type.
        count: of the seats.
        capacity: tokens in each.

    Attributes:
        count: as given.
        capacity: as given.
        stores: by layer, keys and values, each ``[count, heads, capacity + SPARE, dim]``, finite throughout.
    """

    def __init__(self, like: KVRows, count: int, capacity: int) -> None:
        self.count = count
        self.capacity = capacity
        self.stores = {
            index: (
                keys.new_zeros((count, keys.shape[0], capacity + SPARE, keys.shape[2])),
                values.new_zeros((count, values.shape[0], capacity + SPARE, values.shape[2])),
            )
            for index, (keys, values) in like.layers.items()
        }
        self._seats = [Seat(self._layers(n), capacity) for n in range(count)]
        self._recent = list(self._seats)  # those that were not used for longest come first

    @property
    def tokens(self) -> int:
        """Memory that the seats take, in tokens."""
        return self.count * (self.capacity + SPARE)

    def take(self, caches: Sequence[KVCache], among: int) -> list[int]:
        """Seats every cache in one of the first ``among`` seats.

        Somebody else who sits there leaves if no seat is empty, whoever was not here for longest first; else all stay,
        so a cache is copied when it comes and seldom again.

        Args:
            caches: no more than ``among``, each short enough.
            among: how many seats.

        Returns:
            The numbers of their seats.
        """
        within = self._seats[:among]
        free = [seat for seat in within if seat.user is None]
        free += [seat for seat in self._recent if seat in within and seat.user not in [None, *caches]]
        taken: list[Seat] = []
        for cache in caches:
            seat = cache.seat
            if seat not in within:
                seat = free.pop(0)
                if seat.user is not None:
                    seat.user.move(None)
                cache.move(seat)
            assert seat is not None
            taken.append(seat)
        self._recent = [seat for seat in self._recent if seat not in taken] + taken
        return [self._seats.index(seat) for seat in taken]

    def _layers(self, number: int) -> dict[int, tuple[Tensor, Tensor]]:
        return {
            index: (keys[number, :, : self.capacity], values[number, :, : self.capacity])
            for index, (keys, values) in self.stores.items()
        }

"""A pass of fixed shape, all of whose inputs are tensors: nothing in it depends on numbers that only the host knows.

Sessions stand below each other, each with as many rows and columns as every other; what is too much is padding that
nobody looks at. So the same kernels with the same arguments compute any such pass, which a captured graph needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lookup_spec.model.attention import Scores, attend

_Numbers = TypeVar("_Numbers", Tensor, NDArray[np.int32])


@dataclass(frozen=True, slots=True)
class Shape:
    """Of a pass.

    Attributes:
        sessions: those in the first so many seats, whether they take part or not.
        width: rows of each.
        columns: keys that each row looks at or not: the tokens in the cache, and the session's rows behind them.
    """

    sessions: int
    width: int
    columns: int

    @property
    def rows(self) -> int:
        """Of all sessions."""
        return self.sessions * self.width

    @property
    def numbers(self) -> int:
        """Entries of the input."""
        return self.sessions + self.rows * (2 + self.width)

    def parts(self, numbers: _Numbers) -> tuple[_Numbers, _Numbers, _Numbers, _Numbers]:
        """The input's parts, which share its memory.

        Args:
            numbers: at least :attr:`numbers`.

        Returns:
            Tokens in the cache ``[sessions]``; those of the rows, and their positions, ``[sessions, width]``; and which
            row sees which, ``[sessions, width, width]``.
        """
        a = self.sessions
        b, c = a + self.rows, a + 2 * self.rows
        rows = self.sessions, self.width
        return (
            numbers[:a],
            numbers[a:b].reshape(rows),
            numbers[b:c].reshape(rows),
            numbers[c : self.numbers].reshape(*rows, self.width),
        )


class StaticPlan:
    """What rows see in a pass of fixed shape, see :class:`lookup_spec.model.attention.Plan`.

    Args:
        shape: of the pass.
        stores: by layer, keys and values, each ``[seats, heads, room, dim]``, finite throughout. A session's new rows,
            padding included, go behind its cached ones; there must be room.
        lengths: tokens in the cache ``[sessions]``.
        positions: of the rows ``[sessions, width]``.
        seen: which of its session's rows a row sees ``[sessions, width, width]``, itself at least; else 0.
    """

    def __init__(
        self,
        shape: Shape,
        stores: Mapping[int, tuple[Tensor, Tensor]],
        lengths: Tensor,
        positions: Tensor,
        seen: Tensor,
    ) -> None:
        self._shape = shape
        self._stores = stores
        self._positions = positions
        device = lengths.device
        columns = torch.arange(shape.columns, device=device)
        self._targets = lengths[:, None] + torch.arange(shape.width, device=device)  # [sessions, width]
        behind = columns - lengths[:, None]  # [sessions, columns]: below 0 in the cache, else the session's row
        cached, row = behind < 0, behind.clamp(0, shape.width - 1)
        own = seen.gather(2, row[:, None].expand(-1, shape.width, -1)).bool()
        self._visible = cached[:, None] | (own & (behind < shape.width)[:, None])  # [sessions, width, columns]
        self._places = torch.where(cached, columns, positions.gather(1, row))  # [sessions, columns]: their positions
        self._masks: dict[tuple[int | None, int], Tensor] = {}

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scores: Scores) -> Tensor:
        """See :class:`lookup_spec.model.attention.Plan`."""
        sessions, width = self._shape.sessions, self._shape.width
        seen: list[Tensor] = []
        for store, rows in zip(self._stores[layer], (key, value), strict=True):
            fresh = rows.unflatten(1, (sessions, width)).transpose(0, 1)  # [sessions, heads, width, dim]
            kept = store[:sessions]
            kept.scatter_(2, self._targets[:, None, :, None].expand_as(fresh), fresh.to(kept.dtype))
            seen.append(kept[:, :, : self._shape.columns].to(query.dtype))
        # Query heads that share keys stand below each other like rows, so keys are read once for all of them.
        groups = query.shape[0] // key.shape[0]
        queries = query.unflatten(1, (sessions, width)).transpose(0, 1)  # [sessions, query heads, width, dim]
        queries = queries.reshape(sessions, key.shape[0], groups * width, -1)
        attended = attend(queries, seen[0], seen[1], self._mask(scores.window, groups, query.dtype), scores)
        return attended.reshape(sessions, query.shape[0], width, -1).transpose(1, 2).flatten(0, 1)

    def _mask(self, window: int | None, times: int, dtype: torch.dtype) -> Tensor:
        """Additive mask ``[sessions, 1, times * width, columns]``, shared by all layers alike in this."""
        key = window, times
        if key not in self._masks:
            visible = self._visible
            if window is not None:
                visible = visible & (self._positions[:, :, None] - self._places[:, None] < window)
            mask = torch.zeros(visible.shape, dtype=dtype, device=visible.device)
            mask.masked_fill_(~visible, float("-inf"))
            self._masks[key] = mask.repeat(1, times, 1)[:, None]
        return self._masks[key]

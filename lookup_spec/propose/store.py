"""Segments kept between requests, so that the same document is indexed once."""

from __future__ import annotations

import sys
from array import array
from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Protocol, TypeVar, cast

from lookup_spec.propose.segment import Segment

DEFAULT_BYTES = 256 << 20

_ENTRY_BYTES = 512
"""An entry's share of the store's table, and its key without the content."""

_Key = tuple[str, str, bytes]


class Indexed(Protocol):
    """What can be kept: it never changes."""

    @property
    def nbytes(self) -> int:
        """Memory it takes."""


_T = TypeVar("_T", bound=Indexed)


class SegmentStore:
    """Segments by tenant and content, the least recently used dropped first.

    A tenant is found only what the same tenant put in: the tenant is part of the key. The content itself is
    the rest of it, four bytes a token, so equal hashes of different texts cannot mix them up. Safe to use from
    several threads.

    Args:
        max_bytes: the most memory that all kept segments may take together, keys included; 0 keeps none.

    Raises:
        ValueError: ``max_bytes`` is negative.
    """

    def __init__(self, max_bytes: int = DEFAULT_BYTES) -> None:
        if max_bytes < 0:
            raise ValueError(f"max_bytes is {max_bytes}; give 0 (keep nothing) or more")
        self.max_bytes = max_bytes
        self._segments: OrderedDict[_Key, Indexed] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._segments)

    @property
    def nbytes(self) -> int:
        """Bytes that the kept segments take, never more than ``max_bytes``."""
        return self._bytes

    def get(self, tenant: str, ids: Sequence[int]) -> Segment:
        """The tenant's segment of this content, built if it is not there.

        Raises:
            ValueError: a token id is out of range.
        """
        return self.made(tenant, ids, Segment, "")

    def made(self, tenant: str, ids: Sequence[int], make: Callable[[Sequence[int]], _T], kind: str) -> _T:
        """What is made of this content for the tenant, made if it is not there.

        Args:
            tenant: whose it is.
            ids: the content.
            make: makes it, of the content alone.
            kind: tells what one function makes from what others do.

        Raises:
            ValueError: a token id is out of range.
        """
        if self.max_bytes == 0:
            return make(ids)
        try:
            key = (tenant, kind, array("i", ids).tobytes())
        except OverflowError as error:
            raise ValueError(f"a token id is out of range: {error}") from error
        with self._lock:
            segment = self._segments.get(key)
            if segment is not None:
                self._segments.move_to_end(key)
                return cast(_T, segment)
        made = make(ids)  # outside the lock: others need not wait for our index
        self._keep(key, made)
        return made

    def _keep(self, key: _Key, segment: Indexed) -> None:
        size = _size(key, segment)
        if size > self.max_bytes:
            return
        with self._lock:
            if key in self._segments:
                return
            self._segments[key] = segment
            self._bytes += size
            while self._bytes > self.max_bytes:
                self._bytes -= _size(*self._segments.popitem(last=False))

    def forget(self, tenant: str) -> None:
        """Drops everything of one tenant."""
        with self._lock:
            for key in [key for key in self._segments if key[0] == tenant]:
                self._bytes -= _size(key, self._segments.pop(key))


def _size(key: _Key, segment: Indexed) -> int:
    return _ENTRY_BYTES + sys.getsizeof(key[0]) + sys.getsizeof(key[2]) + segment.nbytes

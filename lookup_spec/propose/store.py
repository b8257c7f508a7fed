"""Segments kept between requests, so that the same document is indexed once."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from lookup_spec.propose.segment import Segment

DEFAULT_BYTES = 256 << 20


class SegmentStore:
    """Segments by tenant and content, the least recently used dropped first.

    A tenant is found only what the same tenant put in: the tenant is part of the key. The content itself is
    the rest of it, so equal hashes of different texts cannot mix them up. Safe to use from several threads.

    Args:
        max_bytes: the most bytes that all kept segments may take together; 0 keeps none.

    Raises:
        ValueError: ``max_bytes`` is negative.
    """

    def __init__(self, max_bytes: int = DEFAULT_BYTES) -> None:
        if max_bytes < 0:
            raise ValueError(f"max_bytes is {max_bytes}; give 0 (keep nothing) or more")
        self.max_bytes = max_bytes
        self._segments: OrderedDict[tuple[str, tuple[int, ...]], Segment] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._segments)

    @property
    def nbytes(self) -> int:
        """Bytes that the kept segments take, never more than ``max_bytes``."""
        return self._bytes

    def get(self, tenant: str, ids: tuple[int, ...]) -> Segment:
        """The tenant's segment of this content, built if it is not there."""
        key = (tenant, ids)
        with self._lock:
            segment = self._segments.get(key)
            if segment is not None:
                self._segments.move_to_end(key)
                return segment
        segment = Segment(ids)  # outside the lock: others need not wait for our index
        self._keep(key, segment)
        return segment

    def _keep(self, key: tuple[str, tuple[int, ...]], segment: Segment) -> None:
        if segment.nbytes > self.max_bytes:
            return
        with self._lock:
            if key in self._segments:
                return
            self._segments[key] = segment
            self._bytes += segment.nbytes
            while self._bytes > self.max_bytes:
                _, dropped = self._segments.popitem(last=False)
                self._bytes -= dropped.nbytes

    def forget(self, tenant: str) -> None:
        """Drops everything of one tenant."""
        with self._lock:
            for key in [key for key in self._segments if key[0] == tenant]:
                self._bytes -= self._segments.pop(key).nbytes

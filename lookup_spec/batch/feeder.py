"""Prepares requests a few ahead of their turn, on a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from queue import Empty, Full, Queue
from typing import Generic, TypeVar

T = TypeVar("T")
U = TypeVar("U")

_PATIENCE = 0.1  # seconds


class Feeder(Generic[T, U]):
    """Runs through something in the background, never far ahead of whoever takes from it.

    Args:
        items: what to run through; only the thread touches it.
        prepare: makes of each item what is taken.
        ahead: how many prepared items may lie ready.
    """

    def __init__(self, items: Iterable[T], prepare: Callable[[T], U], ahead: int) -> None:
        self.ended = False
        self._items = items
        self._prepare = prepare
        self._ready: Queue[U | _End] = Queue(ahead)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feeder", daemon=True)
        self._thread.start()

    def take(self, *, wait: bool) -> U | None:
        """The next prepared item, or None if there is none, now or, as :attr:`ended` tells, ever again.

        Args:
            wait: until there is one, for a short while.

        Raises:
            Exception: what ended the run.
        """
        if self.ended:
            return None
        try:
            item = self._ready.get(timeout=_PATIENCE) if wait else self._ready.get_nowait()
        except Empty:
            return None
        if not isinstance(item, _End):
            return item
        self.ended = True
        if item.error is not None:
            raise item.error
        return None

    def close(self) -> None:
        """Ends the run where it is; afterwards the thread has ended."""
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        error = None
        try:
            for item in self._items:
                if not self._put(self._prepare(item)):
                    return
        except Exception as caught:  # for whoever takes the next item
            error = caught
        self._put(_End(error))

    def _put(self, item: U | _End) -> bool:
        while not self._closed.is_set():
            try:
                self._ready.put(item, timeout=_PATIENCE)
            except Full:
                continue
            return True
        return False


class _End:
    def __init__(self, error: Exception | None) -> None:
        self.error = error

"""Places for answers: the one gate that bounds how many run and wait."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lookup_server.errors import bad_request, overloaded

_REMEMBERED = 32  # ends of answers, to tell how fast places become free
_LEAST, _MOST = 1, 120  # seconds that a client may be told to stay away


class Seats:
    """Places that requests take for their answers, for the event loop's thread alone.

    Args:
        total: how many there are.
        clock: seconds.
    """

    def __init__(self, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.total = total
        self.taken = 0
        self._clock = clock
        self._freed: deque[float] = deque(maxlen=_REMEMBERED)
        self._since: deque[float] = deque()  # when requests that hold places came, oldest first

    @contextmanager
    def take(self, count: int) -> Iterator[None]:
        """Keeps places while a request is served.

        Raises:
            ApiError: they are taken, or there never were so many.
        """
        if count > self.total:
            raise bad_request(f"The request asks for {count} answers; ask for {self.total} or fewer.", "n")
        if self.taken + count > self.total:
            raise overloaded(self.taken, self.wait_for(count))
        self.taken += count
        came = self._clock()
        self._since.append(came)
        try:
            yield
        finally:
            self.taken -= count
            self._since.remove(came)
            self._freed.extend([self._clock()] * min(count, _REMEMBERED))

    def wait_for(self, count: int) -> int:
        """Whole seconds after which there will probably be so many free places.

        Told by how fast places became free lately; before any did, by how long the oldest request has been there,
        which may be half of what it needs.
        """
        now = self._clock()
        missing = self.taken + count - self.total
        if self._freed:
            pace = (now - self._freed[0]) / len(self._freed)
            seconds = missing * pace
        else:
            seconds = now - self._since[0] if self._since else 0.0
        return min(max(math.ceil(seconds), _LEAST), _MOST)

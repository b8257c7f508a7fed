"""Outcomes in the order of their requests."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from lookup_spec.batch.request import BadLine, Request
from lookup_spec.batch.results import Outcome


class InOrder:
    """Keeps outcomes back until all that come before them are out."""

    def __init__(self) -> None:
        self._waiting: deque[str] = deque()
        self._ended: dict[str, Outcome] = {}

    def __len__(self) -> int:
        """Requests that were read, and whose outcomes are not out yet."""
        return len(self._waiting)

    def noting(self, requests: Iterable[Request | BadLine]) -> Iterator[Request | BadLine]:
        """The same requests; in the order in which they are taken from here, outcomes go out."""
        for request in requests:
            if isinstance(request, Request):
                self._waiting.append(request.custom_id)
            yield request

    def put(self, outcomes: Sequence[Outcome]) -> list[Outcome]:
        """Adds some; returns those that are to go out now."""
        self._ended.update((outcome.request.custom_id, outcome) for outcome in outcomes)
        out = []
        while self._waiting and self._waiting[0] in self._ended:
            out.append(self._ended.pop(self._waiting.popleft()))
        return out

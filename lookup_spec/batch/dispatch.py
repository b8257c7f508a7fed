"""Which worker gets which requests, so that each comes to one end, however many workers are lost."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

from lookup_spec.batch.parts import Part
from lookup_spec.batch.request import BadLine, Request
from lookup_spec.batch.results import Outcome

W = TypeVar("W")

_TOGETHER = 2  # times that a request may be lost together with others
_LOST = {
    "message": "Three workers ended while they answered this request, the last one while it answered nothing else.",
    "type": "server_error",
    "param": None,
    "code": "worker_lost",
}


class Dispatch(Generic[W]):
    """Deals requests to workers, and takes back what a lost worker had.

    A request that was lost with two workers goes to one that has nothing else. If that is lost too, the request itself
    is to blame, and fails.

    Args:
        requests: read one by one, as workers want them.
    """

    def __init__(self, requests: Iterator[Request | BadLine]) -> None:
        self._rest = requests
        self._bad: list[BadLine] = []
        self._again: deque[Request] = deque()
        self._suspects: deque[Request] = deque()
        self._losses: Counter[str] = Counter()
        self._held: dict[W, dict[str, Request]] = {}
        self._ended = False

    @property
    def held(self) -> int:
        """Requests that somebody has, or had when it was lost."""
        return sum(map(len, self._held.values())) + len(self._again) + len(self._suspects)

    @property
    def done(self) -> bool:
        """Whether every request has come to its end."""
        return self._ended and not self.held and not self._bad

    def has(self, worker: W) -> int:
        """How many requests a worker has."""
        return len(self._held.get(worker, ()))

    def deal(self, worker: W, most: int, *, fresh: bool = True) -> list[Request]:
        """More requests for a worker.

        Args:
            worker: who asks.
            most: as many as it can have in all.
            fresh: whether any may be such as nobody had before.
        """
        held = self._held.setdefault(worker, {})
        if any(self._losses[name] >= _TOGETHER for name in held):
            return []
        if self._suspects and not held:
            dealt = [self._suspects.popleft()]
        else:
            dealt = []
            while len(held) + len(dealt) < most and (request := self._next(fresh)) is not None:
                dealt.append(request)
        held.update((request.custom_id, request) for request in dealt)
        return dealt

    def bad_lines(self) -> list[BadLine]:
        """Those met since the last call."""
        found, self._bad = self._bad, []
        return found

    def take(self, worker: W, outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
        """A worker has brought requests to their end; returns what is now."""
        for outcome in outcomes:
            del self._held[worker][outcome.request.custom_id]
            self._losses.pop(outcome.request.custom_id, None)
        return outcomes

    def keep(self, worker: W, parts: Sequence[Part]) -> None:
        """A worker has finished parts of answers; if it is lost, whoever gets the requests has them."""
        held = self._held[worker]
        for part in parts:
            request = held[part.custom_id]
            held[part.custom_id] = replace(request, kept={**request.kept, part.digest: part.said})

    def lose(self, worker: W) -> Sequence[Outcome]:
        """A worker is gone; what it had goes to others, save for requests that come to their end by this."""
        failed = []
        for name, request in self._held.pop(worker, {}).items():
            self._losses[name] += 1
            if self._losses[name] < _TOGETHER:
                self._again.append(request)
            elif self._losses[name] == _TOGETHER:
                self._suspects.append(request)
            else:
                del self._losses[name]
                failed.append(Outcome(request, 500, {"error": dict(_LOST)}))
        return failed

    def _next(self, fresh: bool) -> Request | None:
        if self._again:
            return self._again.popleft()
        if not fresh:
            return None
        for found in self._rest:
            if isinstance(found, Request):
                return found
            self._bad.append(found)
        self._ended = True
        return None

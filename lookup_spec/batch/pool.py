"""Requests on an engine, as many at the same time as pay."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, field
from functools import partial
from typing import TypeAlias

from lookup_spec.batch.feeder import Feeder
from lookup_spec.batch.parts import Part
from lookup_spec.batch.request import BadLine, Request
from lookup_spec.batch.results import Event, Outcome
from lookup_spec.batch.work import Api, Work
from lookup_spec.engine.session import Session
from lookup_spec.errors import InvalidRequestError
from lookup_spec.pipeline.engine import Engine
from lookup_spec.stats import Stats

_AHEAD = 16  # requests that lie prepared
_BEGIN = 4  # requests at the same time, until it is known how many pay
_AGAIN = 64  # steps after which that is asked anew
_BEHIND = 4  # times as many requests may be held as run, for the sake of order


@dataclass(slots=True)
class Cost:
    """What answers took so far.

    Attributes:
        tokens: delivered, those of answers that are not complete included.
        prompt_tokens: of complete answers, like the others.
        cached_tokens: as many of these did not have to be computed.
        completion_tokens: delivered.
        forward_passes: that chose tokens.
    """

    tokens: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    forward_passes: int = 0

    def add(self, stats: Stats) -> None:
        """Counts a complete answer."""
        self.prompt_tokens += stats.prompt_tokens
        self.cached_tokens += stats.cached_tokens
        self.completion_tokens += stats.completion_tokens
        self.forward_passes += stats.forward_passes

    @classmethod
    def total(cls, costs: Iterable[Cost]) -> Cost:
        """All of them together."""
        return cls(*map(sum, zip(*map(astuple, costs), strict=True)))


@dataclass(eq=False, slots=True)
class _Job:
    request: Request
    work: Work
    open: dict[int, Session] = field(default_factory=dict)
    outcome: Outcome | None = None


Prepared: TypeAlias = Feeder[Request | BadLine, _Job | Outcome | BadLine]


class Pool:
    """Runs requests until there are no more.

    Args:
        engine: nobody else may step it.
        api: knows how requests are answered.
        parallel: answers at the same time; None asks the engine now and then how many pay.
        keep_order: answers come in the order of the requests. Some then have to wait for others, and a limited number
            of them may.

    Attributes:
        cost: what it took so far.
        parallel: how many answers may run at the same time now.
    """

    def __init__(self, engine: Engine, api: Api, parallel: int | None = None, *, keep_order: bool = False) -> None:
        self.cost = Cost()
        self.parallel = _BEGIN if parallel is None else parallel
        self._engine = engine
        self._api = api
        self._fixed = parallel is not None
        self._keep_order = keep_order
        self._jobs: deque[_Job] = deque()  # in the order of the requests
        self._parts: list[Part] = []  # finished in this step

    @property
    def running(self) -> int:
        """Answers that are being generated, or wait for their turn in the engine."""
        return sum(len(job.open) for job in self._jobs)

    def run(self, requests: Iterable[Request | BadLine]) -> Generator[Sequence[Event], None, None]:
        """What has come to an end, after every step and perhaps nothing; closing the iterator stops all work.

        Parts of answers come as soon as they are finished, whatever order is kept.

        Args:
            requests: read in the background, a few ahead of need. Bad lines are passed on.
        """
        feeder = self.feeder(requests)
        try:
            yield from self.work(feeder)
        finally:
            feeder.close()

    def feeder(self, requests: Iterable[Request | BadLine]) -> Prepared:
        """Requests that are read and prepared in the background, a few ahead of need."""
        return Feeder(requests, partial(_prepared, self._api), _AHEAD)

    def work(self, feeder: Prepared) -> Generator[Sequence[Event], None, None]:
        """As :meth:`run`, of requests that somebody else lets be prepared, and closes."""
        steps = 0
        try:
            while True:
                yield list(self._fill(feeder))
                if not self._jobs and feeder.ended:
                    return
                steps += self._engine.step()
                if not self._fixed and steps >= _AGAIN:
                    steps = 0
                    self.parallel = self._engine.best_parallel
                for job in self._jobs:
                    self._advance(job)
                yield list(self._ended())
        finally:
            for job in self._jobs:
                _cancel(job)
            self._jobs.clear()
            self._engine.step()  # lets the engine see that they were cancelled

    def _fill(self, feeder: Prepared) -> Iterator[Event]:
        """Starts requests while there is room; those that fail at once have come to their end."""
        waiting = self._engine.load.waiting  # since the last step, for memory or for what another computes
        while self.running < self.parallel and not waiting:
            if len(self._jobs) >= _BEHIND * self.parallel:
                break
            found = feeder.take(wait=not self._jobs)
            if found is None:
                break
            if isinstance(found, _Job):
                self._jobs.append(found)
                self._start(found)
            else:
                yield found
        yield from self._ended()

    def _start(self, job: _Job) -> None:
        try:
            for index, task in enumerate(job.work.tasks):
                job.open[index] = self._engine.submit(
                    task.prompt,
                    task.params,
                    speculation=task.speculation,
                    continuing=task.continuing,
                    priority="batch",
                )
        except Exception as error:  # one request's failure is not the others'
            self._fail(job, error)

    def _advance(self, job: _Job) -> None:
        try:
            for index, session in list(job.open.items()):
                piece = session.take()
                if piece is None:
                    continue
                self.cost.tokens += len(piece.token_ids)
                part = job.work.take(index, piece)
                if part is not None:
                    self._parts.append(part)
                if piece.finish_reason is not None:
                    self.cost.add(piece.stats)
                    del job.open[index]
            if job.open or job.outcome is not None:
                return
            result = job.work.result()
        except Exception as error:  # likewise
            self._fail(job, error)
            return
        if isinstance(result, dict):
            job.outcome = Outcome(job.request, 200, result)
        else:
            job.work = result
            self._start(job)

    def _fail(self, job: _Job, error: Exception) -> None:
        _cancel(job)
        job.outcome = Outcome(job.request, *self._api.failure(error))

    def _ended(self) -> Iterator[Event]:
        yield from self._parts
        self._parts.clear()
        if self._keep_order:
            while self._jobs and self._jobs[0].outcome is not None:
                outcome = self._jobs.popleft().outcome
                assert outcome is not None
                yield outcome
            return
        for job in [job for job in self._jobs if job.outcome is not None]:
            self._jobs.remove(job)
            assert job.outcome is not None
            yield job.outcome


def _prepared(api: Api, request: Request | BadLine) -> _Job | Outcome | BadLine:
    if isinstance(request, BadLine):
        return request
    try:
        if request.problem:
            raise InvalidRequestError(request.problem)
        return _Job(request, api.prepare(request))
    except Exception as error:  # one request's failure is not the others'
        return Outcome(request, *api.failure(error))


def _cancel(job: _Job) -> None:
    for session in job.open.values():
        session.cancel()
    job.open.clear()

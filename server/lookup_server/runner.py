"""The one thread that steps the engine, and its hand-over to the event loop."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from lookup_server.calls import Call
from lookup_server.errors import shutting_down, too_late
from lookup_server.metrics import Metrics
from lookup_server.seats import Seats
from lookup_spec.engine.session import Piece, Session
from lookup_spec.params import Priority, SamplingParams
from lookup_spec.pipeline.engine import Engine
from lookup_spec.propose.prompt import Prompt
from lookup_spec.stats import Load

T = TypeVar("T")

_log = logging.getLogger(__name__)

_PREPARERS = 4  # threads that turn bodies into sessions
_GIVE_WAY = 0.0005  # seconds


@dataclass(slots=True)
class Stop:
    """Ends answers from outside: within a step they get their last piece, with the finish reason ``"cancelled"``.

    Attributes:
        reason: why; None as long as they may go on.
    """

    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """One answer to generate.

    Attributes:
        prompt: what to answer.
        params: how to choose and when to stop.
        speculation: whether to draft.
        continuing: the answer goes on in the middle of the prompt's text.
        priority: how urgent it is.
        prompt_seconds: an answer whose prompt is not computed so long after the work on it began is cancelled; None for
            no limit. A pass that has begun is ended first.
        limit: sees every piece before it is delivered, and may end the answer by giving it a finish reason.
        stop: ends the answer early; several may share one.
    """

    prompt: Prompt
    params: SamplingParams
    speculation: bool = True
    continuing: bool = False
    priority: Priority = "interactive"
    prompt_seconds: float | None = None
    limit: Callable[[Piece], Piece] = lambda piece: piece
    stop: Stop = field(default_factory=Stop)


class Channel:
    """The pieces of one request's answers, on their way from the engine's thread to the event loop.

    It is not bounded by itself: what it can hold is bounded by the answers' lengths.

    Args:
        answers: how many there are.
        call: what they answer.
        seconds: after this time from the call's arrival, no piece comes any more; None for no limit.
    """

    def __init__(self, answers: int, call: Call, seconds: float | None) -> None:
        self.closed = False
        self.call = call
        self._loop = asyncio.get_running_loop()
        self._open = answers
        self._items: asyncio.Queue[tuple[int, Piece] | Exception] = asyncio.Queue()
        self._alarm: asyncio.TimerHandle | None = None
        if seconds is not None:
            left = call.arrived + seconds - time.monotonic()
            self._alarm = self._loop.call_later(left, self._items.put_nowait, too_late(seconds))

    def put(self, item: tuple[int, Piece] | Exception) -> None:
        """Called by the engine's thread; nobody listens to a closed channel."""
        if not self.closed:
            self._loop.call_soon_threadsafe(self._items.put_nowait, item)

    def close(self) -> None:
        """Nobody listens any more."""
        self.closed = True
        if self._alarm is not None:
            self._alarm.cancel()

    def __aiter__(self) -> AsyncIterator[tuple[int, Piece]]:
        return self

    async def __anext__(self) -> tuple[int, Piece]:
        """The next piece of any answer, with the answer's index.

        Raises:
            ApiError: the time is over.
            Exception: what ended an answer.
        """
        if self._open == 0:
            raise StopAsyncIteration
        item = await self._items.get()
        if isinstance(item, Exception):
            raise item
        if item[1].finish_reason is not None:
            self._open -= 1
        return item


@dataclass(slots=True)
class _Job:
    session: Session
    channel: Channel
    index: int
    task: Task
    delivered: int = 0  # tokens
    last: float = 0.0  # when

    @property
    def late(self) -> bool:
        """Whether its prompt takes too long."""
        most = self.task.prompt_seconds
        if most is None or self.delivered:
            return False
        stats = self.session.stats()
        return not stats.forward_passes and stats.prefill_seconds > most


class Runner:
    """Runs answers on an engine that only its own thread steps.

    Args:
        engine: the engine; nobody else may step it.
        seats: how many answers may run and wait.
        request_seconds: most time from a call's arrival to the end of its answers; None for no limit.

    Attributes:
        steps: forward passes so far.
        draining: no new request is let in.
        load: what the engine was busy with after its last step.
        metrics: counts what happens.
    """

    def __init__(self, engine: Engine, *, seats: int, request_seconds: float | None = None) -> None:
        self.engine = engine
        self.steps = 0
        self.draining = False
        self.load = Load()
        self.metrics = Metrics(engine, lambda: self.load, lambda: max(self.active - self.load.running, 0))
        self._seats = Seats(seats)
        self._request_seconds = request_seconds
        self._changed = threading.Condition()
        self._arrived: list[_Job] = []
        self._stopping = False
        self._entering = 0
        self._preparers = ThreadPoolExecutor(_PREPARERS, thread_name_prefix="prepare")
        self._thread = threading.Thread(target=self._work, name="engine", daemon=True)

    def start(self) -> None:
        """Starts the engine's thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ends what still runs with an error that says so; afterwards the thread has ended."""
        self.draining = True
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join()
        self._preparers.shutdown(cancel_futures=True)

    @property
    def active(self) -> int:
        """Answers that run, wait, or are being prepared."""
        return self._seats.taken

    def admit(self, answers: int) -> AbstractContextManager[None]:
        """Keeps places for a request's answers. Only for the event loop's thread.

        Raises:
            ApiError: the places are taken, or never enough, or the service is ending.
        """
        if self.draining:
            raise shutting_down()
        return self._seats.take(answers)

    async def prepare(self, work: Callable[[], T]) -> T:
        """Does work that takes long for long prompts, such as tokenizing, beside the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._preparers, work)

    @asynccontextmanager
    async def open(self, tasks: Sequence[Task], call: Call) -> AsyncIterator[Channel]:
        """Starts answers; leaving the context stops those that still run, within a step.

        Args:
            tasks: the answers.
            call: what they answer.

        Raises:
            InvalidRequestError: one can never be served.
        """
        channel = Channel(len(tasks), call, self._request_seconds)
        try:
            await self.prepare(lambda: self._submit(tasks, channel))
            yield channel
        finally:
            channel.close()

    def _submit(self, tasks: Sequence[Task], channel: Channel) -> None:
        """Called by a preparing thread: taking in a long prompt takes its time."""
        for index, task in enumerate(tasks):
            if channel.closed:
                return
            with self._changed:
                self._entering += 1
            try:
                session = self.engine.submit(
                    task.prompt,
                    task.params,
                    speculation=task.speculation,
                    continuing=task.continuing,
                    tenant=channel.call.tenant,
                    priority=task.priority,
                )
            finally:
                with self._changed:
                    self._entering -= 1
            with self._changed:
                if self._stopping:
                    raise shutting_down()
                self._arrived.append(_Job(session, channel, index, task, last=channel.call.arrived))
                self._changed.notify()

    def _work(self) -> None:
        jobs: list[_Job] = []
        while True:
            with self._changed:
                while not (jobs or self._arrived or self._stopping):
                    self._changed.wait()
                jobs += self._arrived
                self._arrived.clear()
                if self._stopping:
                    break
            jobs = self._turn(jobs)
        for job in jobs:
            job.session.cancel()
            self._tell_end(job, "shutting down")
            job.channel.put(shutting_down())

    def _turn(self, jobs: Sequence[_Job]) -> list[_Job]:
        """One step; returns the jobs that go on."""
        for job in jobs:
            if (job.channel.closed or job.task.stop.reason is not None or job.late) and not job.session.finished:
                job.session.cancel()
        try:
            self.steps += self.engine.step()
        except Exception as error:  # whatever it was, no caller may wait for ever
            _log.exception("the engine failed in a step")
            for job in jobs:
                job.session.fail(error)
        self.load = self.engine.load
        if self._entering:
            time.sleep(_GIVE_WAY)  # the engine's lock is not fair: let those who wait for it have it
        return [job for job in jobs if self._deliver(job)]

    def _deliver(self, job: _Job) -> bool:
        """Passes on what a step brought; false once that was the last."""
        try:
            piece = job.session.take()
        except Exception as error:  # what ended the session is for its caller to see
            self._tell_end(job, "error")
            job.channel.put(error)
            return False
        if piece is None:
            return True
        self._tell_piece(job, piece)
        piece = job.task.limit(piece)
        if piece.finish_reason is not None:
            job.session.cancel()  # what ended by itself stays as it is
            stopped = "cancelled by client" if job.channel.closed else job.task.stop.reason
            self._tell_end(job, (stopped if piece.finish_reason == "cancelled" else None) or piece.finish_reason)
        job.channel.put((job.index, piece))
        return piece.finish_reason is None

    def _tell_piece(self, job: _Job, piece: Piece) -> None:
        now, tokens = time.monotonic(), piece.stats.completion_tokens
        if tokens == job.delivered:
            return
        if job.delivered:
            self.metrics.went_on(now - job.last, tokens - job.delivered)
        else:
            self.metrics.began(now - job.last)
        job.delivered, job.last = tokens, now

    def _tell_end(self, job: _Job, reason: str) -> None:
        stats, call = job.session.stats(), job.channel.call
        self.metrics.ended(stats, reason)
        call.trace.answered(call.arrived, time.monotonic(), stats, reason)
        about = {
            "request_id": call.id,
            "tenant": call.tenant[:12],
            "finish_reason": reason,
            "prompt_tokens": stats.prompt_tokens,
            "cached_tokens": stats.cached_tokens,
            "completion_tokens": stats.completion_tokens,
            "forward_passes": stats.forward_passes,
            "drafted_tokens": stats.drafted,
            "accepted_tokens": stats.accepted,
            "prefill_seconds": round(stats.prefill_seconds, 3),
            "decode_seconds": round(stats.decode_seconds, 3),
        }
        line = "%s after %d tokens in %d passes, prompt %d (%d cached)"
        counts = (stats.completion_tokens, stats.forward_passes, stats.prompt_tokens, stats.cached_tokens)
        _log.info(line, reason, *counts, extra={"about": about})

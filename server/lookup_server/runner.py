"""The one thread that steps the engine, and its hand-over to the event loop."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from lookup_server.errors import bad_request, overloaded, shutting_down
from lookup_spec.engine.session import Piece, Session
from lookup_spec.params import Priority, SamplingParams
from lookup_spec.pipeline.engine import Engine
from lookup_spec.propose.prompt import Prompt

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
        limit: sees every piece before it is delivered, and may end the answer by giving it a finish reason.
        stop: ends the answer early; several may share one.
    """

    prompt: Prompt
    params: SamplingParams
    speculation: bool = True
    continuing: bool = False
    priority: Priority = "interactive"
    limit: Callable[[Piece], Piece] = lambda piece: piece
    stop: Stop = field(default_factory=Stop)


class Channel:
    """The pieces of one request's answers, on their way from the engine's thread to the event loop.

    It is not bounded by itself: what it can hold is bounded by the answers' lengths.
    """

    def __init__(self, answers: int) -> None:
        self.closed = False
        self._loop = asyncio.get_running_loop()
        self._open = answers
        self._items: asyncio.Queue[tuple[int, Piece] | Exception] = asyncio.Queue()

    def put(self, item: tuple[int, Piece] | Exception) -> None:
        """Called by the engine's thread; nobody listens to a closed channel."""
        if not self.closed:
            self._loop.call_soon_threadsafe(self._items.put_nowait, item)

    def __aiter__(self) -> AsyncIterator[tuple[int, Piece]]:
        return self

    async def __anext__(self) -> tuple[int, Piece]:
        """The next piece of any answer, with the answer's index.

        Raises:
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


@dataclass(frozen=True, slots=True)
class _Job:
    session: Session
    channel: Channel
    index: int
    limit: Callable[[Piece], Piece]
    stop: Stop


class Runner:
    """Runs answers on an engine that only its own thread steps.

    Args:
        engine: the engine; nobody else may step it.
        max_sessions: how many answers the engine runs at the same time.
        max_waiting: how many more may wait.

    Attributes:
        steps: forward passes so far.
        draining: no new request is let in.
    """

    def __init__(self, engine: Engine, *, max_sessions: int, max_waiting: int) -> None:
        self.engine = engine
        self.steps = 0
        self.draining = False
        self._seats = max_sessions + max_waiting
        self._seated = 0
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
        return self._seated

    @contextmanager
    def admit(self, answers: int) -> Iterator[None]:
        """Keeps places for a request's answers. Only for the event loop's thread.

        Raises:
            ApiError: the places are taken, or never enough, or the service is ending.
        """
        if self.draining:
            raise shutting_down()
        if answers > self._seats:
            raise bad_request(f"The request asks for {answers} answers; ask for {self._seats} or fewer.", "n")
        if self._seated + answers > self._seats:
            raise overloaded(self._seated)
        self._seated += answers
        try:
            yield
        finally:
            self._seated -= answers

    async def prepare(self, work: Callable[[], T]) -> T:
        """Does work that takes long for long prompts, such as tokenizing, beside the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._preparers, work)

    @asynccontextmanager
    async def open(self, tasks: Sequence[Task], tenant: str = "") -> AsyncIterator[Channel]:
        """Starts answers; leaving the context stops those that still run, within a step.

        Args:
            tasks: the answers.
            tenant: whose they are.

        Raises:
            InvalidRequestError: one can never be served.
            OverloadedError: too many others wait.
        """
        channel = Channel(len(tasks))
        try:
            await self.prepare(lambda: self._submit(tasks, tenant, channel))
            yield channel
        finally:
            channel.closed = True

    def _submit(self, tasks: Sequence[Task], tenant: str, channel: Channel) -> None:
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
                    tenant=tenant,
                    priority=task.priority,
                )
            finally:
                with self._changed:
                    self._entering -= 1
            with self._changed:
                if self._stopping:
                    raise shutting_down()
                self._arrived.append(_Job(session, channel, index, task.limit, task.stop))
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
            job.channel.put(shutting_down())

    def _turn(self, jobs: Sequence[_Job]) -> list[_Job]:
        """One step; returns the jobs that go on."""
        for job in jobs:
            reason = "cancelled by client" if job.channel.closed else job.stop.reason
            if reason is not None and not job.session.finished:
                job.session.cancel()
                _log.info("%s after %d tokens", reason, job.session.stats().completion_tokens)
        try:
            self.steps += self.engine.step()
        except Exception as error:  # whatever it was, no caller may wait for ever
            _log.exception("the engine failed in a step")
            for job in jobs:
                job.session.fail(error)
        if self._entering:
            time.sleep(_GIVE_WAY)  # the engine's lock is not fair: let those who wait for it have it
        return [job for job in jobs if _deliver(job)]


def _deliver(job: _Job) -> bool:
    """Passes on what a step brought; false once that was the last."""
    try:
        piece = job.session.take()
    except Exception as error:  # what ended the session is for its caller to see
        job.channel.put(error)
        return False
    if piece is None:
        return True
    piece = job.limit(piece)
    job.channel.put((job.index, piece))
    if piece.finish_reason is None:
        return True
    job.session.cancel()  # what ended by itself stays as it is
    return False

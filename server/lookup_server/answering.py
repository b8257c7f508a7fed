"""Runs a request's answers for as long as its client listens, and sends them as a stream or as a whole."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from typing import Any, Protocol, TypeAlias

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from lookup_server import sse
from lookup_server.calls import call_of
from lookup_server.runner import Channel, Runner, Task
from lookup_server.settings import Settings
from lookup_server.wire import Json
from lookup_spec.engine.session import Piece

_log = logging.getLogger(__name__)


class Reply(Protocol):
    """Puts a request's answers into the form of some API. It is told every piece once, in order.

    Attributes:
        done: what ends a complete stream.
    """

    @property
    def done(self) -> bytes: ...

    def opening(self) -> Iterator[dict[str, Any]]:
        """Events before the first piece."""

    def chunks(self, index: int, piece: Piece) -> Iterator[dict[str, Any]]:
        """The events that a piece of an answer brings."""

    def closing(self) -> Iterator[dict[str, Any]]:
        """Events after the last piece."""

    def breaking(self, error: Exception) -> Iterator[dict[str, Any]]:
        """Events instead of the rest, if something goes wrong."""

    def whole(self) -> Any:
        """Everything in one, once all pieces were told."""


Prepare: TypeAlias = Callable[[], tuple[Sequence[Task], Reply]]


class Answering(Response):
    """The response to a request for answers; all the work happens while it is being sent.

    Until the first byte, errors leave as exceptions, so that they become responses of their own. A client
    that goes away, before the first token or later, ends the work within a step.

    Args:
        runner: what runs the answers.
        settings: the operator's.
        answers: how many there will be.
        prepare: makes the tasks and the reply; called beside the event loop.
        stream: send events as the answers grow.
        during: entered while the answers are prepared and run.
    """

    def __init__(
        self,
        runner: Runner,
        settings: Settings,
        answers: int,
        prepare: Prepare,
        *,
        stream: bool,
        during: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        super().__init__()
        self._runner = runner
        self._settings = settings
        self._count = answers
        self._prepare = prepare
        self._streams = stream
        self._during = during

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        outlet = _Outlet(send)
        work = self._stream(scope, outlet) if self._streams else self._whole(scope, receive, outlet)
        if not await _while_one_listens(work, _disconnected(receive), outlet.stuck(self._settings.send_seconds)):
            about = {"request_id": call_of(scope).id}
            _log.info("the client of %s went away", scope["path"], extra={"about": about})

    async def _whole(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._opened(scope) as (pieces, reply):
            async for index, piece in pieces:
                for _ in reply.chunks(index, piece):
                    pass  # the reply keeps what it was told
        await Json(reply.whole())(scope, receive, send)

    async def _stream(self, scope: Scope, send: Send) -> None:
        async with self._opened(scope) as (pieces, reply):
            headers = [(name.encode(), value.encode()) for name, value in sse.HEADERS.items()]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            try:
                async for data in self._paced(_events(pieces, reply)):
                    await send(_body(data))
            except Exception as error:  # the status is sent; the stream itself has to tell
                await send(_body(b"".join(map(sse.event, reply.breaking(error)))))
            await send(_body(b"", more=False))

    def _paced(self, events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        if self._settings.smooth_stream_ms:
            return sse.smoothed(events, self._settings.smooth_stream_ms / 1000)
        return sse.with_heartbeats(events, self._settings.heartbeat_seconds)

    @asynccontextmanager
    async def _opened(self, scope: Scope) -> AsyncIterator[tuple[Channel, Reply]]:
        with self._runner.admit(self._count), self._during():
            tasks, reply = await self._runner.prepare(self._prepare)
            async with self._runner.open(tasks, call_of(scope)) as pieces:
                yield pieces, reply


class _Outlet:
    """Sends to a client, and knows whether it takes what it is sent."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._since: float | None = None

    async def __call__(self, message: Message) -> None:
        self._since = time.monotonic()
        await self._send(message)
        self._since = None

    async def stuck(self, seconds: float) -> None:
        """Returns once a message has not been taken for so long."""
        while True:
            waits = 0.0 if self._since is None else time.monotonic() - self._since
            if waits >= seconds:
                return
            await asyncio.sleep(seconds - waits)


async def _events(pieces: Channel, reply: Reply) -> AsyncIterator[bytes]:
    for chunk in reply.opening():
        yield sse.event(chunk)
    async for index, piece in pieces:
        for chunk in reply.chunks(index, piece):
            yield sse.event(chunk)
    for chunk in reply.closing():
        yield sse.event(chunk)
    if reply.done:
        yield reply.done


def _body(data: bytes, *, more: bool = True) -> Message:
    return {"type": "http.response.body", "body": data, "more_body": more}


async def _while_one_listens(work: Coroutine[Any, Any, None], *ends: Coroutine[Any, Any, None]) -> bool:
    """Does work until one of the ends of all listening comes; tells whether the work was done."""
    task = asyncio.create_task(work)
    others = [asyncio.create_task(end) for end in ends]
    try:
        await asyncio.wait((task, *others), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            return False
        await task
        return True
    finally:
        for one in (task, *others):
            one.cancel()
        await asyncio.gather(task, *others, return_exceptions=True)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass

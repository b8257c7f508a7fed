"""Runs a request's answers for as long as its client listens, and sends them as a stream or as a whole."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from typing import Any, Protocol, TypeAlias

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from lookup_server import sse
from lookup_server.access import tenant_of
from lookup_server.runner import Channel, Runner, Task
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
        answers: how many there will be.
        prepare: makes the tasks and the reply; called beside the event loop.
        stream: send events as the answers grow.
        heartbeat: seconds of silence after which a stream sends a comment.
        during: entered while the answers are prepared and run.
    """

    def __init__(
        self,
        runner: Runner,
        answers: int,
        prepare: Prepare,
        *,
        stream: bool,
        heartbeat: float,
        during: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        super().__init__()
        self._runner = runner
        self._count = answers
        self._prepare = prepare
        self._streams = stream
        self._heartbeat = heartbeat
        self._during = during

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        work = self._stream(scope, send) if self._streams else self._whole(scope, receive, send)
        if not await _while_connected(receive, work):
            _log.info("the client of %s went away", scope["path"])

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
                async for data in sse.with_heartbeats(_events(pieces, reply), self._heartbeat):
                    await send(_body(data))
            except Exception as error:  # the status is sent; the stream itself has to tell
                await send(_body(b"".join(map(sse.event, reply.breaking(error)))))
            await send(_body(b"", more=False))

    @asynccontextmanager
    async def _opened(self, scope: Scope) -> AsyncIterator[tuple[Channel, Reply]]:
        with self._runner.admit(self._count), self._during():
            tasks, reply = await self._runner.prepare(self._prepare)
            async with self._runner.open(tasks, tenant_of(scope)) as pieces:
                yield pieces, reply


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


async def _while_connected(receive: Receive, work: Coroutine[Any, Any, None]) -> bool:
    """Does work unless the client goes away first; tells whether the work was done."""
    task = asyncio.create_task(work)
    gone = asyncio.create_task(_disconnected(receive))
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            return False
        await task
        return True
    finally:
        task.cancel()
        gone.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass

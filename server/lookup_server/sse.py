"""Server-sent events: the bytes, and nothing about what they say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from lookup_server.wire import dump

HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",  # nginx would hold the stream back otherwise
}
DONE = b"data: [DONE]\n\n"
# Not the ": ping" of other servers: an editor client takes a line that begins so for the end of its buffer.
HEARTBEAT = b": hb\n\n"


def event(value: Any) -> bytes:
    """One event that carries a JSON value."""
    return f"data: {dump(value)}\n\n".encode("utf-8", errors="replace")


async def smoothed(events: AsyncIterator[bytes], seconds: float, size: int = 2048) -> AsyncIterator[bytes]:
    """The events as blocks of one size at even times, so that neither tells how much came when.

    Comments fill up a block that there is too little for. The stream ends with a full block, too, so its length tells
    how long the answer took and, in blocks, how much it was; nothing else.

    Args:
        events: whole events each.
        seconds: from one block to the next.
        size: of a block, in bytes.
    """
    waiting = bytearray()
    ended: Exception | None = None
    done = False

    async def collect() -> None:
        nonlocal ended, done
        try:
            async for event in events:
                waiting.extend(event)
        except Exception as error:  # for the reader, behind what came before
            ended = error
        done = True

    collecting = asyncio.create_task(collect())
    loop = asyncio.get_running_loop()
    due = loop.time()
    try:
        while waiting or not done:
            due = max(due + seconds, loop.time())  # who reads slowly gets no bursts afterwards
            await asyncio.sleep(due - loop.time())
            block = bytes(waiting[:size])
            del waiting[:size]
            yield block + _filling(size - len(block))
        if ended is not None:
            raise ended
    finally:
        collecting.cancel()
        await asyncio.gather(collecting, return_exceptions=True)


def _filling(size: int) -> bytes:
    """A comment of some size; where one byte is left, a line end, which says nothing between events."""
    return b":" + b" " * (size - 2) + b"\n" if size > 1 else b"\n" * size


async def with_heartbeats(events: AsyncIterator[bytes], seconds: float) -> AsyncIterator[bytes]:
    """The events, and a comment after every so many seconds without one."""
    upcoming = asyncio.ensure_future(anext(events))
    try:
        while True:
            done, _ = await asyncio.wait({upcoming}, timeout=seconds)
            if not done:
                yield HEARTBEAT
                continue
            try:
                yield upcoming.result()
            except StopAsyncIteration:
                return
            upcoming = asyncio.ensure_future(anext(events))
    finally:
        upcoming.cancel()
        await asyncio.gather(upcoming, return_exceptions=True)

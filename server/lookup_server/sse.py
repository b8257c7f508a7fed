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

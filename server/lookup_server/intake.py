"""Bodies on their way in: each within a size and a time, and all together within some memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

from starlette.datastructures import FormData
from starlette.requests import ClientDisconnect, Request

from lookup_server.errors import ApiError, crowded
from lookup_server.settings import Settings

T = TypeVar("T")

_UNCOUNTED = 1 << 16  # bytes of each body: as much as a connection may hold anyway, so that short ones always get in
_SPOOLED = 1 << 20  # bytes of a form's file that are in memory; the rest is on disk


class Intake:
    """Where bodies arrive; for the event loop's thread alone.

    What has arrived of a body takes room until it has been dealt with. Once all is taken, whose body needs more is
    told to come back: if it had to wait instead, bodies that are half there could wait for each other.

    Args:
        settings: the operator's.

    Attributes:
        taken: bytes of all bodies that are there.
    """

    def __init__(self, settings: Settings) -> None:
        self.taken = 0
        self._room = settings.arriving_bytes
        self._most = settings.max_body_bytes
        self._seconds = settings.body_seconds
        # A file may take as much longer as it may be larger.
        self._form_seconds = settings.body_seconds * max(1.0, settings.max_file_mb / settings.max_body_mb)

    @asynccontextmanager
    async def body(self, request: Request) -> AsyncIterator[bytes]:
        """A request's body; within, it takes room.

        Raises:
            ApiError: too large (413), too slow (408), or no room (429).
        """
        length = request.headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self._most:
            raise self._too_large()
        with self._share() as share:
            yield await _in_time(self._collect(request, share), self._seconds)

    @asynccontextmanager
    async def form(self, request: Request, *, files: int, fields: int) -> AsyncIterator[FormData]:
        """A request's form, whose files are mostly on disk; what it has in memory takes room.

        Raises:
            ApiError: too slow (408), or no room (429).
            MultiPartException: it is no form, or has more files or fields.
        """

        async def parse() -> FormData:
            return await request.form(max_files=files, max_fields=fields)

        with self._share() as share:
            share.grow(_UNCOUNTED + _SPOOLED)
            form = await _in_time(parse(), self._form_seconds)
            try:
                yield form
            finally:
                await form.close()

    @contextmanager
    def _share(self) -> Iterator[_Share]:
        share = _Share(self, self._room)
        try:
            yield share
        finally:
            self.taken -= share.counted

    async def _collect(self, request: Request, share: _Share) -> bytes:
        body = bytearray()
        try:
            async for chunk in request.stream():
                if len(body) + len(chunk) > self._most:
                    raise self._too_large()
                share.grow(len(body) + len(chunk))
                body += chunk
        except ClientDisconnect:
            raise ApiError(499, "The client went away.") from None
        return bytes(body)

    def _too_large(self) -> ApiError:
        # The rest of the body is not read, so the connection cannot be used again.
        message = f"The body is larger than {self._most} bytes; send less."
        return ApiError(413, message, code="body_too_large", headers={"connection": "close"})


class _Share:
    """What one body takes."""

    def __init__(self, intake: Intake, room: int) -> None:
        self.counted = 0
        self._intake = intake
        self._room = room

    def grow(self, length: int) -> None:
        """Makes room for a body that is so long by now."""
        more = max(length - _UNCOUNTED, 0) - self.counted
        if more > 0 and self._intake.taken + more > self._room:
            raise crowded(self._room)
        self._intake.taken += more
        self.counted += more


async def _in_time(arriving: Coroutine[Any, Any, T], seconds: float) -> T:
    try:
        return await asyncio.wait_for(arriving, seconds)
    except asyncio.TimeoutError:
        message = f"The body did not arrive within {seconds:g} seconds."
        raise ApiError(408, message, headers={"connection": "close", "x-should-retry": "false"}) from None

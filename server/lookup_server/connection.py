"""A client's connection, which has to say what it wants within a time."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol


class Connection(H11Protocol):
    """Uvicorn's, closed when the head of a request takes too long: silent clients would use up the process's files.

    Attributes:
        head_seconds: from the opening, or from a request's first byte, to the end of its head.
    """

    head_seconds = 30.0

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._alarm: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begins to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Takes a part of a request; what comes between two requests begins the next one."""
        super().data_received(data)
        if self._between_requests:
            self._wait()
        else:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing more will come."""
        self._stop_waiting()
        super().connection_lost(exc)

    @property
    def _between_requests(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _wait(self) -> None:
        if self._alarm is None:
            self._alarm = self.loop.call_later(self.head_seconds, self._too_late)

    def _stop_waiting(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _too_late(self) -> None:
        self._alarm = None
        if self._between_requests and not self.transport.is_closing():
            self.transport.close()


def within(seconds: float) -> type[Connection]:
    """Connections that wait so long for the head of a request."""
    return type("Connection", (Connection,), {"head_seconds": seconds})

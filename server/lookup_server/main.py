"""Listening, serving, and ending well."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import Callable
from types import FrameType

import uvicorn

from lookup_server.app import create_app
from lookup_server.connection import within
from lookup_server.routes.state import State
from lookup_server.settings import Settings
from lookup_server.tracing import Tracing
from lookup_spec.errors import LookupSpecError
from lookup_spec.pipeline.engine import Engine

_LAST_WORDS = 2.0  # seconds for the error events at the end of the grace time


def bind(host: str, port: int) -> socket.socket:
    """Takes the address, without listening yet: whether it is free shows before a model is loaded.

    Raises:
        LookupSpecError: it cannot be had.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        sock = socket.socket(family, kind, protocol)
    except OSError as error:
        raise LookupSpecError(f"{host} is not an address of this machine ({error.strerror}).") from error
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _ask_after_silent_clients(sock)
        sock.bind(address)
    except OSError as error:
        sock.close()
        raise LookupSpecError(
            f"Cannot listen on {host} port {port} ({error.strerror}); choose another with --port."
        ) from error
    return sock


def _ask_after_silent_clients(sock: socket.socket) -> None:
    """Connections, which take this over, end when a client's machine has been gone for about two minutes."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4), ("TCP_USER_TIMEOUT", 120_000)):
        if hasattr(socket, name):  # not every system has all of them
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def url_of(sock: socket.socket) -> str:
    """Where a browser on this machine finds the service."""
    host, port = sock.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = "localhost"
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


class Server(uvicorn.Server):
    """Uvicorn, with answers that are told when the time is up.

    At a stop signal no new request is let in; running answers have the grace time to complete, and what is
    left then ends with an error event.

    Args:
        config: uvicorn's.
        service: whose runner is told about the end.
        ready: called once connections are accepted.
    """

    def __init__(self, config: uvicorn.Config, service: State, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.service = service
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        runner = self.service.runner
        runner.draining = True
        loop = asyncio.get_running_loop()
        stop = loop.call_later(self.service.settings.grace_seconds, lambda: loop.run_in_executor(None, runner.stop))
        try:
            await super().shutdown(sockets)
        finally:
            stop.cancel()


def make_server(
    engine: Engine,
    settings: Settings,
    ready: Callable[[], None] = lambda: None,
    tracing: Tracing | None = None,
) -> Server:
    """A server that is ready to run on a bound socket."""
    app = create_app(engine, settings, tracing)
    config = uvicorn.Config(
        app,
        log_config=None,  # what it says goes where everything goes
        log_level="warning",
        http=within(settings.body_seconds),
        ws="none",
        loop="asyncio",
        server_header=False,
        timeout_graceful_shutdown=int(settings.grace_seconds + _LAST_WORDS),
    )
    state = app.state.service
    assert isinstance(state, State)
    return Server(config, state, ready)


def run(engine: Engine, settings: Settings, sock: socket.socket, ready: Callable[[], None]) -> None:
    """Serves until a signal says stop; then the process may end with exit code 0."""

    def end(_: int, __: FrameType | None) -> None:
        sys.exit(0)

    # The server handles signals while it runs and raises them again afterwards.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    make_server(engine, settings, ready).run(sockets=[sock])

"""A call on its way through the service: its name, its caller, and what is said of it at the end."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lookup_server.tracing import Trace, Tracing, Untraced

_log = logging.getLogger(__name__)

_SCOPE = "lookup_server.call"
_HEADER = "x-request-id"
_SAFE = re.compile(r"[\x21-\x7e]{1,128}")
_PROBED = frozenset({"/health", "/v1/health", "/metrics"})
_GONE = 499  # a client that went away before there was a status


@dataclass(slots=True)
class Call:
    """One HTTP request.

    Attributes:
        id: the client's name for it, or a new one; it goes back with the response and stands in the log.
        arrived: when, on the monotonic clock.
        tenant: whose it is; one for each key, and one for all where there are no keys.
        trace: told what becomes of it.
    """

    id: str = field(default_factory=lambda: f"req_{uuid4().hex}")
    arrived: float = field(default_factory=time.monotonic)
    tenant: str = ""
    trace: Trace = field(default_factory=Untraced)


def call_of(scope: Scope) -> Call:
    """The call that a scope belongs to."""
    call = scope[_SCOPE]
    assert isinstance(call, Call)
    return call


def _route(scope: Scope) -> str:
    """The path as far as it is one of the service's own, for there are any number of others."""
    route = scope.get("route")
    if route is None:
        return "other"
    path = str(scope["path"])
    if not scope.get("path_params"):
        return path
    return ("/v1" if path.startswith("/v1/") else "") + str(route.path).removeprefix("/v1")


class Calls:
    """Names every call, says its name in the response, and tells what became of it.

    Args:
        app: what answers.
        ended: told the method, the route (not the path, of which there are any number), the status and the seconds
            of every call.
        tracing: told the same, and more.
    """

    def __init__(self, app: ASGIApp, ended: Callable[[str, str, int, float], None], tracing: Tracing) -> None:
        self._app = app
        self._ended = ended
        self._tracing = tracing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        sent = headers.get(_HEADER, "")
        call = Call(sent) if _SAFE.fullmatch(sent) else Call()
        call.trace = self._tracing.begin(headers)
        status = _GONE

        async def named(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[_HEADER] = call.id
            await send(message)

        scope = {**scope, _SCOPE: call}
        try:
            await self._app(scope, receive, named)
        finally:
            self._tell(scope, call, status)

    def _tell(self, scope: Scope, call: Call, status: int) -> None:
        seconds = time.monotonic() - call.arrived
        route = _route(scope)
        self._ended(scope["method"], route, status, seconds)
        level = logging.DEBUG if route in _PROBED and status < 500 else logging.INFO
        about = {
            "request_id": call.id,
            "tenant": call.tenant[:12],
            "method": scope["method"],
            "route": route,
            "status": status,
            "seconds": round(seconds, 3),
        }
        call.trace.end(f"{scope['method']} {route}", status, {"http.route": route, "lookup_spec.request_id": call.id})
        _log.log(level, "%s %s %d in %.2f s", scope["method"], route, status, seconds, extra={"about": about})

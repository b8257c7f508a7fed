"""Who may call, and as whom: the key check, and the paths that need none."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from lookup_server.calls import call_of
from lookup_server.errors import ApiError
from lookup_server.wire import error_response

PUBLIC = frozenset({"/", "/health", "/v1/health"})
"""Paths that answer without a key; everything else, known or not, needs one."""
PUBLIC_FOLDER = "/playground/"
"""What the page at ``/`` is made of answers without one, too: the page asks for the key."""

METRICS = "/metrics"


class KeyCheck:
    """Lets calls through that carry one of the keys, before their body is read.

    Each key is a tenant of its own, whose name the call bears from here on.

    Args:
        app: what to protect.
        keys: the valid keys; none means that everybody may call.
        metrics_key: opens the metrics, which then no other key does; None makes them a route like any other.
    """

    def __init__(self, app: ASGIApp, keys: Sequence[str], metrics_key: str | None = None) -> None:
        self._app = app
        self._digests = [_digest(key) for key in keys]
        self._metrics = self._digests if metrics_key is None else [_digest(metrics_key)]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        digests = self._metrics if scope.get("path") == METRICS else self._digests
        if scope["type"] != "http" or not digests or _is_public(scope["path"]):
            await self._app(scope, receive, send)
            return
        if (tenant := _tenant(scope, digests)) is not None:
            call_of(scope).tenant = tenant
            await self._app(scope, receive, send)
            return
        message = "The API key is missing or wrong; send it as 'Authorization: Bearer KEY'."
        headers = {"www-authenticate": "Bearer"}
        error = ApiError(401, message, "authentication_error", code="invalid_api_key", headers=headers)
        await error_response(error)(scope, receive, send)


def _tenant(scope: Scope, digests: Sequence[bytes]) -> str | None:
    """The caller's name, which does not tell the key; None if the key is wrong."""
    scheme, _, key = Headers(scope=scope).get("authorization", "").partition(" ")
    digest = _digest(key.strip())
    # Every key is compared, in full: how long it takes tells nothing.
    matches = [hmac.compare_digest(digest, other) for other in digests]
    return digest.hex() if scheme.lower() == "bearer" and any(matches) else None


def _is_public(path: str) -> bool:
    return path in PUBLIC or path.startswith(PUBLIC_FOLDER)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", errors="surrogateescape")).digest()

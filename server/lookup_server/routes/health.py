"""Whether the service can take requests."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Request, Response

from lookup_server.errors import ApiError
from lookup_server.reply_forms import Form
from lookup_server.routes.documented import replies
from lookup_server.routes.state import state_of
from lookup_server.wire import Json, error_response

router = APIRouter(tags=["service"])


class Health(Form):
    """The service takes requests."""

    status: Literal["ok"]


@router.get("/health", responses=replies(Health, 503))
@router.head("/health", include_in_schema=False)
@router.api_route("/v1/health", methods=["GET", "HEAD"], include_in_schema=False)
async def health(request: Request) -> Response:
    """200 while requests are let in, 503 once the service is shutting down. Cheap, and needs no key."""
    if state_of(request).runner.draining:
        message = "The server is shutting down."
        return error_response(ApiError(503, message, "unavailable_error", code=503))
    return Json({"status": "ok"})

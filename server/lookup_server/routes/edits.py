"""The routes of edits."""

from __future__ import annotations

from functools import partial
from uuid import uuid4

from fastapi import APIRouter, Request, Response

from lookup_server import body as bodies
from lookup_server.answering import Answering
from lookup_server.calls import call_of
from lookup_server.edits.prepare import edit_tasks
from lookup_server.edits.reply import EditHead
from lookup_server.edits.reply_forms import Cancelled, EditWhole, Warmed
from lookup_server.edits.requests import EditBody, WarmRequest
from lookup_server.edits.warm import warm_tasks
from lookup_server.routes.documented import ANSWER, documented, replies
from lookup_server.routes.state import State, state_of
from lookup_server.wire import Json

router = APIRouter(tags=["edits"])

CHOSEN_ID = "lookup_server.edit_id"
"""Where a server in front of this one may put an edit's name into the request's scope; no client can."""

_EVENTS = "text/event-stream"


@router.post(
    "/edits", openapi_extra=documented(EditBody), responses=replies(EditWhole, *ANSWER, 409, 422, streams=True)
)
async def edit(request: Request) -> Response:
    """Edits a document: events as the edit comes, or all of it in one reply."""
    state = state_of(request)
    body = await bodies.read(request, EditBody, state.intake)
    head = _head(state, body, request)
    stream = _EVENTS in request.headers.get("accept", "") if body.stream is None else body.stream
    return Answering(
        state.runner,
        state.settings,
        1,
        partial(edit_tasks, body, state.engine, head, state.documents),
        stream=stream,
        during=partial(state.edits.entered, head.tenant, head.edit_id, body.document.uri, head.stop),
    )


@router.post("/edits/warm", openapi_extra=documented(WarmRequest), responses=replies(Warmed, *ANSWER, 409))
async def warm(request: Request) -> Response:
    """Computes a document ahead, so that the edit of it that follows begins sooner."""
    state = state_of(request)
    body = await bodies.read(request, WarmRequest, state.intake)
    head = _head(state, body, request)
    return Answering(
        state.runner,
        state.settings,
        1,
        partial(warm_tasks, body, state.engine, head, state.documents),
        stream=False,
        during=partial(state.edits.entered, head.tenant, head.edit_id, body.document.uri, head.stop),
    )


@router.delete("/edits/{edit_id}", responses=replies(Cancelled, 404))
async def cancel(request: Request, edit_id: str) -> Response:
    """Ends a running edit; its own reply then says that it was cancelled."""
    state_of(request).edits.cancel(call_of(request.scope).tenant, edit_id)
    return Json({"edit_id": edit_id, "cancelled": True})


def _head(state: State, body: WarmRequest, request: Request) -> EditHead:
    name = request.scope.get(CHOSEN_ID) or f"edit-{uuid4().hex}"
    return EditHead(state.model(body.model), call_of(request.scope).tenant, name)

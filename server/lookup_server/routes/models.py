"""Which models there are."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from lookup_server.openai.reply_forms import ModelCard, ModelCards
from lookup_server.routes.documented import replies
from lookup_server.routes.state import State, state_of
from lookup_server.wire import Json

router = APIRouter(tags=["models"])


@router.get("/models", responses=replies(ModelCards))
async def models(request: Request) -> Response:
    """All names that the model goes by."""
    state = state_of(request)
    return Json({"object": "list", "data": [_card(state, name) for name in state.names]})


@router.get("/models/{name:path}", responses=replies(ModelCard, 404))
async def model(request: Request, name: str) -> Response:
    """One of them; the names of hub models have slashes in them."""
    state = state_of(request)
    return Json(_card(state, state.model(name)))


def _card(state: State, name: str) -> dict[str, Any]:
    context_length = state.engine.context_length
    return {
        "id": name,
        "object": "model",
        "created": state.started,
        "owned_by": "lookup-spec",
        # Editor clients read the context length in one of these places.
        "max_model_len": context_length,
        "meta": {"n_ctx": context_length, "n_ctx_train": context_length},
    }

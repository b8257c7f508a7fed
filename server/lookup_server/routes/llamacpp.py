"""llama.cpp's own routes, for llama.vim, llama.vscode and other clients of its server."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from fastapi import APIRouter, Request, Response

from lookup_server import body as bodies
from lookup_server.answering import Answering, Prepare
from lookup_server.body import Body
from lookup_server.errors import ApiError
from lookup_server.llamacpp import tokens
from lookup_server.llamacpp.prepare import completion_tasks, infill_tasks, settings_of
from lookup_server.llamacpp.reply_forms import Content, Generated, Props, Rendered, Slot, Tokens
from lookup_server.llamacpp.requests import (
    CompletionBody,
    DetokenizeBody,
    GenerationBody,
    InfillBody,
    TemplateBody,
    TokenizeBody,
)
from lookup_server.routes.documented import ANSWER, BODY, documented, replies
from lookup_server.routes.state import State, state_of
from lookup_server.wire import Json, LongJson
from lookup_spec import __version__
from lookup_spec.pipeline.engine import Engine
from lookup_spec.pipeline.fill import can_fill

router = APIRouter(tags=["llama.cpp"])

B = TypeVar("B", bound=Body)


@router.post(
    "/infill",
    openapi_extra=documented(InfillBody),
    responses=replies(Generated | list[Generated], *ANSWER, 501, streams=True),
)
async def infill(request: Request) -> Response:
    """Fills in the text at the cursor."""
    state = state_of(request)
    if not can_fill(state.engine):
        message = (
            "Infill is not supported by this model: its tokenizer has no tokens for the prefix, the suffix and the "
            "middle; serve a model that was trained to fill in, such as Qwen2.5-Coder."
        )
        raise ApiError(501, message, "not_supported_error", code=501)
    body = await bodies.read(request, InfillBody, state.intake)
    # Where nobody says, the likeliest text is taken, as one wants it in an editor.
    defaults = state.sampling(body.model, temperature=0.0)
    return _answering(state, body, 1, partial(infill_tasks, body, state.engine, state.model(body.model), defaults))


@router.post(
    "/completion",
    openapi_extra=documented(CompletionBody),
    responses=replies(Generated | list[Generated], *ANSWER, streams=True),
)
async def completion(request: Request) -> Response:
    """Goes on with a text."""
    state = state_of(request)
    body = await bodies.read(request, CompletionBody, state.intake)
    model = state.model(body.model)
    prepare = partial(completion_tasks, body, state.engine, model, state.sampling(body.model))
    return _answering(state, body, len(body.prompts), prepare)


@router.get("/props", responses=replies(Props))
async def props(request: Request) -> Response:
    """What the server runs."""
    state = state_of(request)
    return Json(
        {
            "default_generation_settings": {"n_ctx": state.engine.context_length, "params": _defaults(state)},
            "total_slots": state.settings.max_sessions,
            "model_path": state.engine.model_name,
            "model_alias": state.names[0],
            "chat_template": state.engine.template.source,
            "build_info": f"lookup-spec {__version__}",
        }
    )


@router.get("/slots", responses=replies(list[Slot], 400, 503))
async def slots(request: Request, fail_on_no_slot: str = "") -> Response:
    """The places for answers. They have no identity here: the first ones are those that are taken.

    With ``fail_on_no_slot=1``, 503 if all are.
    """
    state = state_of(request)
    total, busy = state.settings.max_sessions, state.runner.active
    if fail_on_no_slot == "1" and busy >= total:
        raise ApiError(503, "No slot is free; try again in a moment.", "unavailable_error", code=503)
    common = {"n_ctx": state.engine.context_length, "speculative": True, "params": _defaults(state)}
    return Json([{"id": number, "is_processing": number < busy, **common} for number in range(total)])


@router.post("/tokenize", openapi_extra=documented(TokenizeBody), responses=replies(Tokens, *BODY))
async def tokenize(request: Request) -> Response:
    """A text's tokens."""
    return await _asked(request, TokenizeBody, tokens.tokenize)


@router.post("/detokenize", openapi_extra=documented(DetokenizeBody), responses=replies(Content, *BODY))
async def detokenize(request: Request) -> Response:
    """The text of tokens."""
    return await _asked(request, DetokenizeBody, tokens.detokenize)


@router.post("/apply-template", openapi_extra=documented(TemplateBody), responses=replies(Rendered, *BODY))
async def apply_template(request: Request) -> Response:
    """A conversation as the model reads it."""
    return await _asked(request, TemplateBody, tokens.apply_template)


async def _asked(request: Request, form: type[B], work: Callable[[B, Engine], dict[str, Any]]) -> Response:
    state = state_of(request)
    body = await bodies.read(request, form, state.intake)
    return await state.runner.prepare(lambda: LongJson(work(body, state.engine)))


def _answering(state: State, body: GenerationBody, prompts: int, prepare: Prepare) -> Answering:
    return Answering(state.runner, state.settings, prompts * body.choices, prepare, stream=bool(body.stream))


def _defaults(state: State) -> dict[str, Any]:
    body = GenerationBody()
    return settings_of(state.engine.sampling(**body.sampling(state.sampling(None))), state.engine)

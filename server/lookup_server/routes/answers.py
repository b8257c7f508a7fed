"""The routes that generate: text completions and chats."""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter, Request, Response

from lookup_server import body as bodies
from lookup_server.answering import Answering, Prepare
from lookup_server.openai.chat import chat_tasks
from lookup_server.openai.completions import completion_tasks
from lookup_server.openai.requests import ChatRequest, CompletionRequest, SamplingFields
from lookup_server.openai.strict import refuse_as_openai
from lookup_server.routes.documented import documented
from lookup_server.routes.state import State, state_of

router = APIRouter(tags=["answers"])


@router.post("/completions", openapi_extra=documented(CompletionRequest))
async def completions(request: Request) -> Response:
    """Continues a text."""
    state = state_of(request)
    body = await bodies.read(request, CompletionRequest, state.settings)
    if state.settings.strict_openai:
        refuse_as_openai(body)
    prepare = partial(completion_tasks, body, state.engine, state.head(body), state.sampling(body.model))
    return _answering(state, body, prepare, len(body.prompts) * body.choices)


@router.post("/chat/completions", openapi_extra=documented(ChatRequest))
async def chat_completions(request: Request) -> Response:
    """Answers a conversation."""
    state = state_of(request)
    body = await bodies.read(request, ChatRequest, state.settings)
    if state.settings.strict_openai:
        refuse_as_openai(body)
    prepare = partial(chat_tasks, body, state.engine, state.head(body), state.sampling(body.model))
    return _answering(state, body, prepare, body.choices)


def _answering(state: State, body: SamplingFields, prepare: Prepare, answers: int) -> Answering:
    return Answering(state.runner, state.settings, answers, prepare, stream=bool(body.stream))

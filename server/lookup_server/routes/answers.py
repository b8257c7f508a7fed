"""The routes that generate: text completions and chats."""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter, Request, Response
from pydantic_core import from_json

from lookup_server import body as bodies
from lookup_server.answering import Answering, Prepare
from lookup_server.editors.filling import tabby_tasks
from lookup_server.editors.forms import Asked, morph_apply
from lookup_server.editors.reply_forms import TabbyText
from lookup_server.editors.requests import TabbyRequest
from lookup_server.editors.rewrite import rewrite_tasks
from lookup_server.openai.chat import chat_tasks
from lookup_server.openai.completions import completion_tasks
from lookup_server.openai.reply_forms import Chat, Text
from lookup_server.openai.requests import ChatRequest, CompletionRequest, SamplingFields, text_of
from lookup_server.openai.strict import refuse_as_openai
from lookup_server.routes.documented import ANSWER, documented, replies
from lookup_server.routes.state import State, state_of
from lookup_server.settings import Settings

router = APIRouter(tags=["answers"])


@router.post(
    "/completions",
    openapi_extra=documented(CompletionRequest, TabbyRequest),
    responses=replies(Text | TabbyText, *ANSWER, 422, streams=True),
)
async def completions(request: Request) -> Response:
    """Continues a text."""
    state = state_of(request)
    async with state.intake.body(request) as data:
        if b'"segments"' in data and await bodies.aside(data, _is_tabbys):
            return await _tabby(state, data)
        body = await bodies.check(data, CompletionRequest)
    if state.settings.strict_openai:
        refuse_as_openai(body)
    prepare = partial(completion_tasks, body, state.engine, state.head(body), state.sampling(body.model))
    return _answering(state, body, prepare, len(body.prompts) * body.choices)


@router.post(
    "/chat/completions", openapi_extra=documented(ChatRequest), responses=replies(Chat, *ANSWER, 422, streams=True)
)
async def chat_completions(request: Request) -> Response:
    """Answers a conversation."""
    state = state_of(request)
    body = await bodies.read(request, ChatRequest, state.intake)
    if state.settings.strict_openai:
        refuse_as_openai(body)
    if (asked := _morphs_edit(body, state.settings)) is not None:
        defaults = state.sampling(body.model, temperature=0.0)
        return _answering(state, body, partial(rewrite_tasks, asked, body, state.engine, state.head(body), defaults), 1)
    prepare = partial(chat_tasks, body, state.engine, state.head(body), state.sampling(body.model))
    return _answering(state, body, prepare, body.choices)


def _is_tabbys(data: bytes) -> bool:
    """Whether a body is in the form of Tabby's clients, whose path is the same as OpenAI's."""
    try:
        return "segments" in (from_json(data) or ())
    except (ValueError, TypeError):
        return False  # whatever it is, it is refused in the same words as any other


async def _tabby(state: State, data: bytes) -> Response:
    body = await bodies.check(data, TabbyRequest)
    prepare = partial(tabby_tasks, body, state.engine, state.sampling(body.model, temperature=0.0))
    return Answering(state.runner, state.settings, 1, prepare, stream=False)


def _morphs_edit(body: ChatRequest, settings: Settings) -> Asked | None:
    """The edit that a chat asks for in the form of Morph's clients, which put the reply into a file as it is."""
    if settings.strict_openai or len(body.messages) > 1 or body.messages[0].role != "user":
        return None
    if body.choices > 1 or body.logprobs or body.tools or body.response_format:
        return None
    return morph_apply(text_of(body.messages[0].content or ""))


def _answering(state: State, body: SamplingFields, prepare: Prepare, answers: int) -> Answering:
    return Answering(state.runner, state.settings, answers, prepare, stream=bool(body.stream))

"""Routes of Mistral's and Mercury's services, which editors that speak to those expect."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fastapi import APIRouter, Request, Response

from lookup_server import body as bodies
from lookup_server.answering import Answering
from lookup_server.editors.filling import fim_tasks
from lookup_server.editors.forms import Asked, mercury_apply, mercury_edit
from lookup_server.editors.reply_forms import Filled
from lookup_server.editors.requests import FimRequest
from lookup_server.editors.rewrite import rewrite_tasks
from lookup_server.errors import bad_request
from lookup_server.openai.reply_forms import Chat
from lookup_server.openai.requests import ChatRequest, text_of
from lookup_server.routes.documented import ANSWER, documented, replies
from lookup_server.routes.state import state_of

router = APIRouter(tags=["editors"])


@router.post("/fim/completions", openapi_extra=documented(FimRequest), responses=replies(Filled, *ANSWER, streams=True))
async def fim(request: Request) -> Response:
    """Fills in between a prompt and a suffix."""
    state = state_of(request)
    body = await bodies.read(request, FimRequest, state.intake)
    prepare = partial(fim_tasks, body, state.engine, state.head(body), state.sampling(body.model, temperature=0.0))
    return Answering(state.runner, state.settings, body.choices, prepare, stream=bool(body.stream))


@router.post(
    "/edit/completions", openapi_extra=documented(ChatRequest), responses=replies(Chat, *ANSWER, 422, streams=True)
)
async def next_edit(request: Request) -> Response:
    """The next edit of a marked region, in fences, or the word None."""
    return await _rewriting(request, mercury_edit, "<|current_file_content|> with <|code_to_edit|> in it")


@router.post(
    "/apply/completions", openapi_extra=documented(ChatRequest), responses=replies(Chat, *ANSWER, 422, streams=True)
)
async def apply(request: Request) -> Response:
    """A file with an update merged in."""
    return await _rewriting(request, mercury_apply, "<|original_code|> and <|update_snippet|>, and nothing else")


async def _rewriting(request: Request, read: Callable[[str], Asked | None], needed: str) -> Response:
    state = state_of(request)
    body = await bodies.read(request, ChatRequest, state.intake)
    asked = read(text_of(body.messages[-1].content or ""))
    if asked is None:
        raise bad_request(f"The last message has to hold {needed}, in the form of Mercury's clients.", "messages")
    for name, there in (("n", body.choices > 1), ("logprobs", body.logprobs), ("tools", body.tools)):
        if there:
            raise bad_request(f"The field {name} does not go with an edit; leave it out.", name)
    prepare = partial(
        rewrite_tasks, asked, body, state.engine, state.head(body), state.sampling(body.model, temperature=0.0)
    )
    return Answering(state.runner, state.settings, 1, prepare, stream=bool(body.stream))

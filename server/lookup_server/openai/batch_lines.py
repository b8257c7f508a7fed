"""Requests of a batch: what the two completion APIs do, without a client at the other end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from lookup_server.errors import ApiError, from_exception, from_validation
from lookup_server.openai.chat import chat_tasks
from lookup_server.openai.completions import completion_tasks
from lookup_server.openai.naming import fingerprint, named
from lookup_server.openai.replies import Head, Reply
from lookup_server.openai.requests import ChatRequest, CompletionRequest, SamplingFields
from lookup_server.openai.tokens import Json
from lookup_server.runner import Task
from lookup_spec.batch.request import Request
from lookup_spec.engine.session import Piece
from lookup_spec.pipeline.engine import Engine

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"

_MOST_ANSWERS = 1024  # to one request
_LIMITS = ("max_tokens", "max_completion_tokens")


@dataclass(frozen=True, slots=True)
class Defaults:
    """What holds for requests that do not say.

    Attributes:
        temperature: 1 is OpenAI's default.
        max_tokens: None leaves it to the API: 16 for text completions, no limit for chats.
        seed: requests without a seed get one that is made of this and of all that they ask, so that it does not
            matter when, where and how often they are answered.
        speculation: whether to draft.
    """

    temperature: float = 1.0
    max_tokens: int | None = None
    seed: int = 0
    speculation: bool = True


class BatchApi:
    """Answers requests to ``/v1/chat/completions`` and ``/v1/completions`` as the service does.

    Args:
        engine: what will answer.
        names: what requests may call the model.
        defaults: for requests that do not say.
    """

    def __init__(self, engine: Engine, names: Sequence[str], defaults: Defaults) -> None:
        self._engine = engine
        self._names = names
        self._defaults = defaults

    def prepare(self, request: Request) -> BatchWork:
        """What answering a request takes.

        Raises:
            ApiError: it is wrong.
            InvalidRequestError: it can never be answered.
        """
        if request.url == CHAT:
            sampling = {"temperature": self._defaults.temperature}
            chat = _checked(ChatRequest, self._complete(request))
            return BatchWork(*chat_tasks(chat, self._engine, self._head(request, chat), sampling))
        if request.url == COMPLETIONS:
            sampling = {"temperature": self._defaults.temperature}
            text = _checked(CompletionRequest, self._complete(request))
            _refuse_too_many(len(text.prompts) * text.choices)
            return BatchWork(
                *completion_tasks(text, self._engine, self._head(request, text), sampling)
            )  # fmt: skip
        raise ApiError(400, f"The url {request.url!r} is not served here; give {CHAT} or {COMPLETIONS}.", param="url")

    def failure(self, error: Exception) -> tuple[int, Json]:
        """The status and the body that the service would answer."""
        found = from_exception(error)
        return found.status, found.body()

    def _head(self, request: Request, body: SamplingFields) -> Head:
        return Head(named(body.model, self._names), fingerprint(self._engine), unique=request.digest)

    def _complete(self, request: Request) -> Json:
        body = {**request.body, "service_tier": "flex"}
        if body.get("stream"):
            raise ApiError(400, "The field stream is wrong: batches have no streams; leave it out.", param="stream")
        if body.get("seed") is None:
            body["seed"] = request.seed(self._defaults.seed)
        if self._defaults.max_tokens is not None and all(body.get(name) is None for name in _LIMITS):
            body["max_tokens"] = self._defaults.max_tokens
        if not self._defaults.speculation:
            body["speculation"] = False
        return body


class BatchWork:
    """A request that is being answered.

    Args:
        tasks: what to generate.
        reply: what becomes of it.
    """

    def __init__(self, tasks: Sequence[Task], reply: Reply) -> None:
        self.tasks = tasks
        self._reply = reply

    def take(self, index: int, piece: Piece) -> None:
        """Keeps what a task has brought."""
        for _ in self._reply.chunks(index, piece):
            pass  # the reply keeps what it was told

    def result(self) -> dict[str, Any]:
        """The reply's body."""
        return self._reply.whole()


def _checked(model: type[Any], body: Json) -> Any:
    try:
        return model.model_validate_json(json.dumps(body))
    except ValidationError as error:
        raise from_validation(error, model) from None


def _refuse_too_many(answers: int) -> None:
    if answers > _MOST_ANSWERS:
        message = f"The request asks for {answers} answers; ask for {_MOST_ANSWERS} or fewer in one line."
        raise ApiError(400, message, param="prompt")

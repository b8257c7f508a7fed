"""``/v1/chat/completions``: from a body to what to generate, and from pieces to the reply."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lookup_server.openai.calls import Calling, CallingAnswer, calling_of
from lookup_server.openai.replies import Answer, Head, Reply
from lookup_server.openai.requests import ChatRequest, text_of
from lookup_server.openai.seeds import seeded
from lookup_server.openai.tokens import Json, chat_logprobs
from lookup_server.prompt_ids import refuse_too_long
from lookup_server.runner import Task
from lookup_spec.engine.session import Piece
from lookup_spec.pipeline.engine import Engine
from lookup_spec.pipeline.prompts import Told


class ChatReply(Reply):
    """The reply to a chat.

    Args:
        head: what its chunks share.
        engine: what answers.
        body: what was asked.
        told: what was expected of the answer.
        continuing: the answer goes on in the middle of the last message.
        calling: how the answer may call tools; None if it may not.
    """

    prefix = "chatcmpl"
    kind = "chat.completion"
    chunk_kind = "chat.completion.chunk"

    def __init__(
        self, head: Head, engine: Engine, body: ChatRequest, told: Told, continuing: bool, calling: Calling | None
    ) -> None:
        super().__init__(
            head,
            engine,
            choices=body.choices,
            continuing=[continuing],
            predicted=[told.predicted],
            sent=body.prediction is not None,
        )
        self._entries: list[list[Json]] | None = [[] for _ in self._answers] if body.logprobs else None
        self._calls = None if calling is None else [CallingAnswer(calling) for _ in self._answers]

    def opening(self) -> Iterator[Json]:
        for index in range(len(self._answers)):
            yield self._chunk(index, {"delta": {"role": "assistant", "content": ""}})

    def _said(self, text: str) -> Json:
        return {"delta": {"content": text} if text else {}}

    def _parts(self, index: int, piece: Piece) -> list[Json]:
        if self._calls is None:
            return super()._parts(index, piece)
        return self._calls[index].deltas(piece.text, last=piece.finish_reason is not None)

    def _reason(self, index: int, reason: str) -> str:
        called = self._calls is not None and self._calls[index].called
        return "tool_calls" if called and reason == "stop" else reason

    def _logprobs(self, index: int, piece: Piece) -> Json | None:
        if self._entries is None or not piece.logprobs:
            return None
        entries = chat_logprobs(self._engine, piece.logprobs)
        self._entries[index] += entries
        return {"content": entries, "refusal": None}

    def _choice(self, index: int, answer: Answer) -> Json:
        said: Json = {"content": "".join(answer.texts)} if self._calls is None else self._calls[index].message()
        return {
            "index": index,
            "message": {"role": "assistant", **said, "refusal": None},
            "logprobs": self._entries and {"content": self._entries[index], "refusal": None},
            "finish_reason": answer.finish_reason,
        }

    def _usage(self) -> Json:
        usage = super()._usage()
        return {
            **usage,
            "completion_tokens_details": {
                "reasoning_tokens": 0,
                "audio_tokens": 0,
                **usage.get("completion_tokens_details", {}),
            },
        }


def chat_tasks(
    body: ChatRequest, engine: Engine, head: Head, defaults: Mapping[str, Any]
) -> tuple[list[Task], ChatReply]:
    """What to generate, and the reply that it is for. Takes long for long messages.

    A last message of the assistant is the beginning of the answer, which goes on from there.

    Args:
        body: what was asked.
        engine: what will answer.
        head: what the reply's chunks share.
        defaults: of the sampling, where the body does not say.

    Raises:
        InvalidRequestError: it can never be served.
    """
    continuing = body.messages[-1].role == "assistant"
    messages = [message.plain() for message in body.messages]
    calling = calling_of(body, engine)
    tools = () if calling is None else calling.tools
    refuse_too_long(engine, "\n".join([*(message["content"] for message in messages), *map(repr, tools)]))
    prediction = None if body.prediction is None else text_of(body.prediction.content)
    told = engine.prompts.chat(messages, prediction=prediction, continuing=continuing, tools=tools)
    logprobs = (body.top_logprobs or 0) if body.logprobs else None
    options = {**body.sampling(defaults), "logprobs": logprobs}
    if body.limit is not None:
        options["max_tokens"] = body.limit
    if calling is not None:
        options["grammar"] = calling.grammar
    elif body.response_format is not None:
        options["grammar"] = body.response_format.grammar
    speculation = body.speculation is not False
    tasks = [
        Task(told.prompt, engine.sampling(**options, seed=seed), speculation, continuing, body.priority)
        for seed in seeded(body.seed, body.choices)
    ]
    return tasks, ChatReply(head, engine, body, told, continuing, calling)

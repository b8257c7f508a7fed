"""``/v1/completions``: from a body to what to generate, and from pieces to the reply."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lookup_server.openai.replies import Answer, Head, Reply
from lookup_server.openai.requests import CompletionRequest
from lookup_server.openai.seeds import seeded
from lookup_server.openai.tokens import CompletionLogprobs, Json, join_completion_logprobs
from lookup_server.prompt_ids import ids_of, refuse_too_long
from lookup_server.runner import Task
from lookup_spec.engine.session import Piece
from lookup_spec.pipeline.engine import Engine
from lookup_spec.pipeline.fill import fill
from lookup_spec.pipeline.prompts import Told
from lookup_spec.text.detokenize import Detokenizer

_MAX_TOKENS = 16  # what OpenAI generates if a request does not say


class CompletionReply(Reply):
    """The reply to a text completion.

    Args:
        head: what its chunks share.
        engine: what answers.
        body: what was asked.
        echoes: text to put before the answers of each prompt.
        predicted: for each prompt, how many tokens of its answer were predicted.
    """

    prefix = "cmpl"
    kind = chunk_kind = "text_completion"

    def __init__(
        self, head: Head, engine: Engine, body: CompletionRequest, echoes: Sequence[str], predicted: Sequence[int]
    ) -> None:
        super().__init__(
            head, engine, choices=body.choices, continuing=[True] * len(echoes), predicted=predicted
        )  # fmt: skip
        self._echoes = echoes
        self._tellers = [
            CompletionLogprobs(engine, body.logprobs, continuing=True)
            for _ in self._answers
            if body.logprobs is not None
        ]
        self._told: list[list[Json]] = [[] for _ in self._answers]

    def opening(self) -> Iterator[Json]:
        for index in range(len(self._answers)):
            if echo := self._echo(index):
                yield self._chunk(index, self._said(echo))

    def _echo(self, index: int) -> str:
        return self._echoes[index // self._choices]

    def _said(self, text: str) -> Json:
        return {"text": text}

    def _logprobs(self, index: int, piece: Piece) -> Json | None:
        if not self._tellers or not piece.logprobs:
            return None
        told = self._tellers[index].take(piece.logprobs)
        self._told[index].append(told)
        return told

    def _choice(self, index: int, answer: Answer) -> Json:
        return {
            "index": index,
            "text": self._echo(index) + "".join(answer.texts),
            "logprobs": join_completion_logprobs(self._told[index]) if self._tellers else None,
            "finish_reason": answer.finish_reason,
        }


def completion_tasks(
    body: CompletionRequest, engine: Engine, head: Head, defaults: Mapping[str, Any]
) -> tuple[list[Task], CompletionReply]:
    """What to generate, and the reply that it is for; all answers to the first prompt come first.

    Takes long for long prompts.

    Args:
        body: what was asked.
        engine: what will answer.
        head: what the reply's chunks share.
        defaults: of the sampling, where the body does not say.

    Raises:
        InvalidRequestError: it can never be served.
    """
    prompts = [_told(engine, prompt, body.suffix) for prompt in body.prompts]
    echoes = [_text(engine, prompt) if body.echo else "" for prompt in body.prompts]
    options = {
        "max_tokens": _MAX_TOKENS,
        **body.sampling(defaults),
        "logprobs": body.logprobs,
        "stop_token_ids": prompts[0].stop_token_ids.union(body.stop_token_ids or ()),
    }
    speculation = body.speculation is not False
    tasks = [
        Task(told.prompt, engine.sampling(**options, seed=seed), speculation, True, body.priority)
        for told in prompts
        for seed in seeded(body.seed, body.choices)
    ]
    return tasks, CompletionReply(head, engine, body, echoes, [told.predicted for told in prompts])


def _told(engine: Engine, prompt: str | list[int], suffix: str | None) -> Told:
    if suffix and isinstance(prompt, str):
        refuse_too_long(engine, prompt + suffix)
        return fill(engine, prompt, suffix).told
    return engine.prompts.text(ids_of(engine, prompt))


def _text(engine: Engine, prompt: str | list[int]) -> str:
    if isinstance(prompt, str):
        return prompt
    text = Detokenizer(engine.vocabulary)
    return text.push_all(prompt) + text.flush()

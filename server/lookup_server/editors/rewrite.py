"""The answer to an edit in another form: the new text, as a chat tells it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lookup_server import sse
from lookup_server.editors.forms import Asked
from lookup_server.errors import bad_request, from_exception
from lookup_server.openai.replies import Head, accepted_prediction
from lookup_server.openai.requests import ChatRequest
from lookup_server.runner import Task
from lookup_spec.engine.session import Piece
from lookup_spec.errors import EditError
from lookup_spec.pipeline.edit import EditDone, EditHunk, EditRun
from lookup_spec.pipeline.edit_plan import EditPlan, EditRequest, plan_edit
from lookup_spec.pipeline.engine import Engine
from lookup_spec.stats import Stats
from lookup_spec.text.edit_task import NextEdit
from lookup_spec.text.lines import SourceText

Json = dict[str, Any]


class Rewriting:
    """The new text of an edit as it becomes sure.

    A stream tells it up to each hunk as that closes, and the rest at the end; joined, that is the new text.

    Args:
        asked: the edit.
        request: the same, read.
        plan: how it was put to the model.
    """

    def __init__(self, asked: Asked, request: EditRequest, plan: EditPlan) -> None:
        self._asked = asked
        self._source = request.source
        self._plan = plan
        self._run = EditRun(request, plan)
        self._at, self._end = asked.lines or (0, len(request.source.lines))
        self._told = ""
        self.done: EditDone | None = None

    def take(self, piece: Piece) -> str:
        """What a piece of the model's answer makes sure.

        Raises:
            EditError: the answer cannot be read.
        """
        before = len(self._told)
        for event in self._run.take(piece):
            match event:
                case EditHunk(state="closed", hunk=hunk):
                    self._say(self._source.stretch(self._at, hunk.start) + hunk.text)
                    self._at = hunk.end
                case EditDone():
                    self.done = event
                    self._finish(event)
        return self._told[before:]

    @property
    def text(self) -> str:
        """All that was told."""
        return self._told

    def usage(self, stats: Stats, *, sent: bool) -> Json:
        """Token counts; a prediction that was not sent cannot have been rejected."""
        accepted = accepted_prediction(stats, self._plan.predicted)
        return {
            "prompt_tokens": stats.prompt_tokens,
            "completion_tokens": stats.completion_tokens,
            "total_tokens": stats.prompt_tokens + stats.completion_tokens,
            "prompt_tokens_details": {"cached_tokens": stats.cached_tokens, "audio_tokens": 0},
            "completion_tokens_details": {
                "reasoning_tokens": 0,
                "audio_tokens": 0,
                "accepted_prediction_tokens": accepted,
                "rejected_prediction_tokens": self._plan.predicted - accepted if sent else 0,
            },
        }

    def _say(self, text: str) -> None:
        if self._asked.fenced and not self._told:
            self._told = "```\n"
        self._told += text

    def _finish(self, done: EditDone) -> None:
        if self._asked.fenced and not self._told and done.hunks == 0:
            self._told = "None"
            return
        self._say(self._source.stretch(self._at, self._end))
        if self._asked.fenced:
            self._told += "```" if self._told.endswith("\n") else "\n```"


class RewriteReply:
    """A rewriting as the reply to a chat; the form of :class:`lookup_server.answering.Reply`.

    Args:
        head: what its chunks share.
        rewriting: the edit.
        sent: the client sent a prediction.
    """

    done = sse.DONE

    def __init__(self, head: Head, rewriting: Rewriting, *, sent: bool) -> None:
        self._head = head
        self._rewriting = rewriting
        self._sent = sent
        self._stats = Stats()
        self._reason = "stop"

    def opening(self) -> Iterator[Json]:
        """The role."""
        yield self._chunk({"role": "assistant", "content": ""})

    def chunks(self, _: int, piece: Piece) -> Iterator[Json]:
        """What became sure.

        Raises:
            EditError: the answer cannot be read.
        """
        if text := self._rewriting.take(piece):
            yield self._chunk({"content": text})
        if (done := self._rewriting.done) is not None:
            self._stats = done.stats
            self._reason = "stop" if done.complete else "length"
            yield self._chunk({}, self._reason)

    def closing(self) -> Iterator[Json]:
        """The token counts, if they were asked for."""
        if self._head.include_usage:
            yield {**self._around("chat.completion.chunk", []), "usage": self._usage()}

    def breaking(self, error: Exception) -> Iterator[Json]:
        """What a stream says instead of its end."""
        yield from_exception(error).body()

    def whole(self) -> Json:
        """The whole reply."""
        message = {"role": "assistant", "content": self._rewriting.text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self._reason}
        return {**self._around("chat.completion", [choice]), "usage": self._usage()}

    def _usage(self) -> Json:
        return self._rewriting.usage(self._stats, sent=self._sent)

    def _chunk(self, delta: Json, reason: str | None = None) -> Json:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        chunk = self._around("chat.completion.chunk", [choice])
        return {**chunk, "usage": None} if self._head.include_usage else chunk

    def _around(self, kind: str, choices: list[Json]) -> Json:
        return {
            "id": f"chatcmpl-{self._head.unique}",
            "object": kind,
            "created": self._head.created,
            "model": self._head.model,
            "system_fingerprint": self._head.fingerprint,
            "choices": choices,
        }


def started(
    asked: Asked, engine: Engine, options: Mapping[str, Any], *, speculation: bool = True, language: str = ""
) -> tuple[Task, Rewriting]:
    """What to generate for an edit in another form, and what reads it.

    Args:
        asked: the edit.
        engine: what will answer.
        options: of the sampling.
        speculation: whether to draft.
        language: of the document, if its path does not tell.

    Raises:
        ApiError: the document is binary, or there is nothing to do.
        ContextLengthError: it does not fit the model.
    """
    try:
        source = SourceText.from_text(asked.text)
        cursor = asked.task.cursor if isinstance(asked.task, NextEdit) else None
        request = EditRequest(
            source,
            asked.task,
            asked.path,
            engine.sampling(**options),
            speculation=speculation,
            language=language,
            lines=asked.lines,
            cursor=None if cursor is None else cursor[0],
            others=asked.others,
        )
        plan = plan_edit(engine, request)
    except EditError as error:
        raise bad_request(str(error), "messages") from None
    return Task(plan.prompt, plan.params, speculation, continuing=True), Rewriting(asked, request, plan)


def rewrite_tasks(
    asked: Asked, body: ChatRequest, engine: Engine, head: Head, defaults: Mapping[str, Any]
) -> tuple[list[Task], RewriteReply]:
    """The same for a chat."""
    options = {**body.sampling(defaults), "seed": None if body.seed is None else body.seed % 2**64}
    if body.limit is not None:
        options["max_tokens"] = body.limit
    task, rewriting = started(asked, engine, options, speculation=body.speculation is not False)
    return [task], RewriteReply(head, rewriting, sent=body.prediction is not None)

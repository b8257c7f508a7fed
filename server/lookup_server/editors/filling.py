"""Filling in at the cursor, as Mistral's and Tabby's clients ask for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from uuid import uuid4

from lookup_server.editors.forms import Asked
from lookup_server.editors.requests import FimRequest, TabbyRequest
from lookup_server.editors.rewrite import Rewriting, started
from lookup_server.errors import from_exception
from lookup_server.prompt_ids import refuse_too_long
from lookup_server.openai.replies import Answer, Head, Reply
from lookup_server.openai.seeds import seeded
from lookup_server.runner import Task
from lookup_spec.engine.session import Piece
from lookup_spec.pipeline.engine import Engine
from lookup_spec.pipeline.fill import fill, room_for
from lookup_spec.text.edit_task import NextEdit
from lookup_spec.text.fim import FimDocument

Json = dict[str, Any]

_TABBY_TOKENS = 64  # as many as its own server generates


class FimReply(Reply):
    """The reply to a filling in: a chat's, with the text in the place of text completions, too, for some read it there.

    Args:
        head: what its chunks share.
        engine: what answers.
        choices: how many answers there are.
    """

    prefix = "fim"
    kind = "chat.completion"
    chunk_kind = "chat.completion.chunk"

    def __init__(self, head: Head, engine: Engine, choices: int) -> None:
        super().__init__(head, engine, choices=choices, continuing=[True], predicted=[0])

    def opening(self) -> Iterator[Json]:
        yield from ()

    def _said(self, text: str) -> Json:
        return {"delta": {"role": "assistant", "content": text}, "text": text}

    def _logprobs(self, index: int, piece: Piece) -> Json | None:
        return None

    def _choice(self, index: int, answer: Answer) -> Json:
        text = "".join(answer.texts)
        message = {"role": "assistant", "content": text}
        return {"index": index, "message": message, "text": text, "finish_reason": answer.finish_reason}


class TabbyReply:
    """The reply to Tabby's clients; the form of :class:`lookup_server.answering.Reply`.

    Args:
        mode: what was asked for.
        rewriting: the next edit, if that was.
    """

    done = b""

    def __init__(self, mode: str, rewriting: Rewriting | None = None) -> None:
        self._mode = mode
        self._rewriting = rewriting
        self._texts: list[str] = []
        self._usage: Json = {}

    def opening(self) -> Iterator[Json]:
        """There is no stream."""
        yield from ()

    def chunks(self, _: int, piece: Piece) -> Iterator[Json]:
        """Keeps what a piece brings.

        Raises:
            EditError: a next edit cannot be read.
        """
        self._texts.append(piece.text if self._rewriting is None else self._rewriting.take(piece))
        if piece.finish_reason is not None:
            stats = piece.stats
            self._usage = (
                {"prompt_tokens": stats.prompt_tokens, "completion_tokens": stats.completion_tokens}
                if self._rewriting is None
                else self._rewriting.usage(stats, sent=False)
            )
        yield from ()

    def closing(self) -> Iterator[Json]:
        """There is no stream."""
        yield from ()

    def breaking(self, error: Exception) -> Iterator[Json]:
        """The error alone."""
        yield from_exception(error).body()

    def whole(self) -> Json:
        """The reply."""
        choice = {"index": 0, "text": "".join(self._texts)}
        return {"id": f"cmpl-{uuid4().hex}", "choices": [choice], "mode": self._mode, "usage": self._usage}


def fim_tasks(
    body: FimRequest, engine: Engine, head: Head, defaults: Mapping[str, Any]
) -> tuple[list[Task], FimReply]:
    """What to fill in between a prompt and a suffix.

    Raises:
        InvalidRequestError: it can never be served, or the model was not trained for it.
    """
    refuse_too_long(engine, body.prompt + (body.suffix or ""))
    options = body.sampling(defaults)
    told = fill(engine, body.prompt, body.suffix or "").told
    options["stop_token_ids"] = told.stop_token_ids.union(body.stop_token_ids or ())
    seed = body.random_seed if body.seed is None else body.seed
    speculation = body.speculation is not False
    tasks = [
        Task(told.prompt, engine.sampling(**options, seed=one), speculation, True, body.priority)
        for one in seeded(seed, body.choices)
    ]
    return tasks, FimReply(head, engine, body.choices)


def tabby_tasks(body: TabbyRequest, engine: Engine, defaults: Mapping[str, Any]) -> tuple[list[Task], TabbyReply]:
    """What to fill in at Tabby's cursor, or which edit comes next.

    Raises:
        InvalidRequestError: it can never be served, or the model was not trained for it.
    """
    segments, history = body.segments, body.segments.edit_history
    options = body.sampling(dict(defaults))
    if body.mode == "next_edit_suggestion" and history is not None:
        task = NextEdit((history.edits_diff,) if history.edits_diff.strip() else ())
        asked = Asked(history.current_version, task, segments.filepath or "")
        job, rewriting = started(asked, engine, options, language=body.language or "")
        return [job], TabbyReply(body.mode, rewriting)
    before, after = segments.prefix, segments.suffix or ""
    refuse_too_long(engine, before + after)
    options = {"max_tokens": _TABBY_TOKENS, **options}
    documents = [FimDocument(snippet.body, snippet.filepath) for snippet in segments.snippets]
    told = fill(engine, before, after, documents or None, room_for(engine.context_length, options["max_tokens"])).told
    params = engine.sampling(**options, stop_token_ids=tuple(told.stop_token_ids))
    return [Task(told.prompt, params, continuing=True)], TabbyReply("standard")

"""Summaries of texts of any length: in parts that fit, and of these a summary again, until it is one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lookup_spec.batch.parts import Part
from lookup_spec.batch.request import Request
from lookup_spec.batch.summary_template import SummaryTemplate
from lookup_spec.batch.work import Api, Task, Work
from lookup_spec.engine.session import Piece
from lookup_spec.errors import BatchError, InvalidRequestError
from lookup_spec.pipeline.engine import Engine
from lookup_spec.text.sections import divisions

CHAT = "/v1/chat/completions"
_MARGIN = 32  # tokens: texts that are joined may have a few more than each by itself


@dataclass(frozen=True, slots=True)
class Summarizing:
    """How to summarize.

    Attributes:
        template: the question.
        max_tokens: of each summary, those of parts included.
        part_tokens: most tokens of a text that is summarized in one go, or less if the context is shorter.
    """

    template: SummaryTemplate
    max_tokens: int
    part_tokens: int

    @property
    def facts(self) -> dict[str, str | int]:
        """What summaries depend on."""
        return {"template": self.template.digest, "max_tokens": self.max_tokens, "part_tokens": self.part_tokens}

    def api(self, engine: Engine, chats: Api) -> SummaryApi:
        """What makes the summaries.

        Args:
            engine: what will answer.
            chats: knows how chats are answered.

        Raises:
            BatchError: they are too long to be joined.
        """
        return SummaryApi(engine, chats, self)


class SummaryApi:
    """Answers requests whose body is ``{"text": …, "name": …}`` with a chat completion that is the summary.

    Args:
        engine: what will answer.
        chats: knows how chats are answered.
        how: to summarize.
    """

    def __init__(self, engine: Engine, chats: Api, how: Summarizing) -> None:
        template, max_tokens = how.template, how.max_tokens
        self._engine = engine
        self._chats = chats
        self._template = template
        self._max_tokens = max_tokens
        around = max(
            self._tokens(template.question("", "x" * 80, 99, 99, joining=joining)) for joining in (False, True)
        )
        chat = len(engine.prompts.chat([{"role": "user", "content": ""}]).prompt.ids)
        self._room = min(how.part_tokens, engine.context_length - max_tokens - around - chat - _MARGIN)
        if self._room < 2 * (max_tokens + _MARGIN):
            raise BatchError(
                f"Summaries of {max_tokens} tokens cannot be joined where only {max(self._room, 0)} tokens fit; lower "
                f"--max-tokens to {max(self._room // 2 - _MARGIN, 1)}, raise --part-tokens, or shorten the template."
            )

    def prepare(self, request: Request) -> SummaryWork:
        """What a summary takes.

        Raises:
            InvalidRequestError: there is no text.
        """
        text, name = request.body["text"], request.body["name"]
        if not text.strip():
            raise InvalidRequestError("The text is empty.", param="text")
        parts = parts_of(text, name, self._tokens, self._room)
        questions = [self._template.question(part, name, n, len(parts)) for n, part in enumerate(parts, 1)]
        return self._work(request, questions)

    def failure(self, error: Exception) -> tuple[int, dict[str, Any]]:
        """What to say about an error."""
        return self._chats.failure(error)

    def _join(self, request: Request, summaries: Sequence[str]) -> SummaryWork:
        """Of summaries, the next ones: each of as many as fit, at least two."""
        name, groups = request.body["name"], list[list[str]]()
        room = 0
        for summary in summaries:
            size = self._tokens(summary) + _MARGIN // 4
            if not groups or (size > room and len(groups[-1]) > 1):
                groups.append([])
                room = self._room
            groups[-1].append(summary.strip())
            room -= size
        questions = [
            self._template.question("\n\n".join(group), name, n, len(groups), joining=True)
            for n, group in enumerate(groups, 1)
        ]
        return self._work(request, questions)

    def _work(self, request: Request, questions: Sequence[str]) -> SummaryWork:
        chats = [self._chat(request, question, last=len(questions) == 1) for question in questions]
        return SummaryWork(request.custom_id, chats, lambda said: self._join(request, said))

    def _chat(self, request: Request, question: str, *, last: bool) -> _Chat:
        body = {"messages": [{"role": "user", "content": question}], "max_tokens": self._max_tokens}
        asked = Request(request.line, request.custom_id, CHAT, body)
        # What a chat says depends on nothing but what it asks: its seed, too, is made of that. Of the last one all of
        # the reply is needed, not only what is kept of others.
        said = None if last else request.kept.get(asked.digest)
        return _Chat(asked.digest, None if said else self._chats.prepare(asked), said)

    def _tokens(self, text: str) -> int:
        return len(self._engine.template.encode_data(text))


@dataclass(slots=True)
class _Chat:
    """A question about a part of a text, or about summaries of parts.

    Attributes:
        digest: of what is asked.
        work: answers it; None if an earlier run has.
        said: the answer's ``text``, ``prompt_tokens`` and ``completion_tokens``, once they are known.
    """

    digest: str
    work: Work | None
    said: dict[str, Any] | None = None

    def reply(self) -> dict[str, Any]:
        """The whole answer, once it is there."""
        assert self.work is not None
        reply = self.work.result()
        assert isinstance(reply, dict), "a chat is answered in one step"
        return reply


class SummaryWork:
    """Chats that are answered together, and what follows from all their answers.

    Args:
        custom_id: the request's.
        chats: one answer each.
        join: what to do with the answers, if they are more than one.
        spent: tokens that earlier chats for the same summary took, of prompts and of answers.
    """

    def __init__(
        self,
        custom_id: str,
        chats: Sequence[_Chat],
        join: Callable[[Sequence[str]], SummaryWork],
        spent: tuple[int, int] = (0, 0),
    ) -> None:
        self._custom_id = custom_id
        self._chats = chats
        self._join = join
        self._spent = spent
        self._open = [(chat, chat.work) for chat in chats if chat.work is not None]

    @property
    def tasks(self) -> Sequence[Task]:
        """What to generate; may be nothing, if all is known from earlier runs."""
        return [task for _, work in self._open for task in work.tasks]

    def take(self, index: int, piece: Piece) -> Part | None:
        """Keeps what a task has brought; returns a chat's answer, if this completes it and others are to follow."""
        chat, work = self._open[index]
        work.take(0, piece)
        if piece.finish_reason is None or len(self._chats) == 1:
            return None
        reply = chat.reply()
        counts = {name: reply["usage"][name] for name in ("prompt_tokens", "completion_tokens")}
        chat.said = {"text": reply["choices"][0]["message"]["content"], **counts}
        return Part(self._custom_id, chat.digest, chat.said)

    def result(self) -> dict[str, Any] | SummaryWork:
        """The last chat's reply, whose token counts are those of all; or the chats that join these answers."""
        prompt, completion = self._spent
        if len(self._chats) == 1:
            reply = self._chats[0].reply()
            prompt += reply["usage"]["prompt_tokens"]
            completion += reply["usage"]["completion_tokens"]
            counts = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
            return {**reply, "usage": {**reply["usage"], **counts}}
        said = [chat.said for chat in self._chats if chat.said is not None]
        following = self._join([one["text"] for one in said])
        following._spent = (
            prompt + sum(one["prompt_tokens"] for one in said),
            completion + sum(one["completion_tokens"] for one in said),
        )
        return following


def parts_of(text: str, path: str, tokens: Callable[[str], int], most: int) -> list[str]:
    """Cuts a text into parts that each have at most so many tokens, at the best places there are.

    The parts joined are the text.

    Args:
        text: any text.
        path: its name; the suffix tells the language.
        tokens: counts them.
        most: at least 1.
    """
    count = tokens(text)
    if count <= most or len(text) == 1:
        return [text]
    # As many letters as have that many tokens on average; where they are denser, parts are cut once more.
    size = max(len(text) * most // count, 1)
    parts = [text[start:end] for start, end in divisions(text, path).split(min(size, len(text) - 1))]
    return [smaller for part in parts for smaller in parts_of(part, path, tokens, most)]

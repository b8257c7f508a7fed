"""What the replies of the two completion APIs have in common.

A reply is told every piece once, in order; what a stream says and what a whole reply says come from the same
call.
"""

from __future__ import annotations

import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from lookup_server import sse
from lookup_server.errors import from_exception
from lookup_server.openai.tokens import Json, Runs
from lookup_spec.engine.session import Piece
from lookup_spec.pipeline.engine import Engine
from lookup_spec.stats import Stats

_ELSEWHERE = ("elsewhere", "answer")  # sources of drafts that do not follow a prediction


@dataclass(frozen=True, slots=True)
class Head:
    """What all chunks of a reply share.

    Attributes:
        model: the name that the caller used.
        fingerprint: changes when answers may.
        include_usage: a stream ends with the token counts.
        include_speculation: a stream tells what was proposed.
    """

    model: str
    fingerprint: str
    include_usage: bool = False
    include_speculation: bool = False
    created: int = field(default_factory=lambda: int(time.time()))
    unique: str = field(default_factory=lambda: uuid.uuid4().hex)


@dataclass(slots=True)
class Answer:
    """What one answer has come to."""

    runs: Runs
    texts: list[str] = field(default_factory=list)
    finish_reason: str | None = None
    stats: Stats = field(default_factory=Stats)


class Reply(ABC):
    """One request's answers in some API's form.

    Args:
        head: what its chunks share.
        engine: what answers.
        choices: how many answers each prompt gets.
        continuing: for each prompt, whether the answer goes on in the middle of its text.
        predicted: for each prompt, how many tokens of its answer were predicted.
        sent: the client sent that prediction; else its prompt told.
    """

    done: ClassVar[bytes] = sse.DONE
    """What ends a complete stream."""
    prefix: ClassVar[str]
    """Of the reply's id."""
    kind: ClassVar[str]
    """The whole reply's ``object``."""
    chunk_kind: ClassVar[str]
    """A chunk's ``object``."""

    def __init__(
        self,
        head: Head,
        engine: Engine,
        *,
        choices: int,
        continuing: Sequence[bool],
        predicted: Sequence[int],
        sent: bool = False,
    ) -> None:
        self._head = head
        self._engine = engine
        self._choices = choices
        self._predicted = predicted
        self._sent = sent
        self._answers = [
            Answer(Runs(engine.vocabulary, continuing=goes_on)) for goes_on in continuing for _ in range(choices)
        ]

    @abstractmethod
    def opening(self) -> Iterator[Json]:
        """Chunks before the first piece."""

    def chunks(self, index: int, piece: Piece) -> Iterator[Json]:
        """What a piece of an answer adds to a stream."""
        answer = self._answers[index]
        answer.texts.append(piece.text)
        logprobs = self._logprobs(index, piece)
        runs = answer.runs.take(piece) if self._head.include_speculation else []
        said = self._parts(index, piece)
        if not said and (logprobs or runs):
            said = [self._said("")]
        for number, part in enumerate(said):
            yield self._chunk(
                index, part, None if number else logprobs, speculation={"runs": [] if number else runs}
            )  # fmt: skip
        if piece.finish_reason is not None:
            answer.finish_reason, answer.stats = self._reason(index, piece.finish_reason), piece.stats
            stats = {"stats": piece.stats.as_dict()}
            yield self._chunk(index, self._said(""), finish_reason=answer.finish_reason, speculation=stats)

    def breaking(self, error: Exception) -> Iterator[Json]:
        """What a stream says instead of its end."""
        yield from_exception(error).body()

    def closing(self) -> Iterator[Json]:
        """Chunks after the last piece."""
        if self._head.include_usage:
            yield {**self._around(self.chunk_kind, []), "usage": self._usage()}

    def whole(self) -> Json:
        """The whole reply, once all pieces were told."""
        choices = [self._choice(index, answer) for index, answer in enumerate(self._answers)]
        return {**self._around(self.kind, choices), "usage": self._usage()}

    def _parts(self, index: int, piece: Piece) -> list[Json]:  # noqa: ARG002 - some answers are read as they grow
        """How a stream says what a piece adds to an answer, in so many chunks."""
        return [self._said(piece.text)] if piece.text else []

    def _reason(self, index: int, reason: str) -> str:  # noqa: ARG002 - some answers end in other ways
        """Why an answer ended, in the API's words."""
        return reason

    @abstractmethod
    def _said(self, text: str) -> Json:
        """How a chunk's choice carries a text; an empty one only stands beside something else."""

    @abstractmethod
    def _logprobs(self, index: int, piece: Piece) -> Json | None:
        """A piece's log-probabilities, if they were asked for and it has some."""

    @abstractmethod
    def _choice(self, index: int, answer: Answer) -> Json:
        """An answer in the whole reply."""

    def _chunk(
        self,
        index: int,
        said: Json,
        logprobs: Json | None = None,
        *,
        finish_reason: str | None = None,
        speculation: Json | None = None,
    ) -> Json:
        choice = {"index": index, **said, "logprobs": logprobs, "finish_reason": finish_reason}
        if self._head.include_speculation and speculation is not None:
            choice["speculation"] = speculation
        chunk = self._around(self.chunk_kind, [choice])
        return {**chunk, "usage": None} if self._head.include_usage else chunk

    def _around(self, kind: str, choices: list[Json]) -> Json:
        return {
            "id": f"{self.prefix}-{self._head.unique}",
            "object": kind,
            "created": self._head.created,
            "model": self._head.model,
            "system_fingerprint": self._head.fingerprint,
            "choices": choices,
        }

    def _usage(self) -> Json:
        """Token counts: delivered tokens only; a prompt counts once, however many answers it gets."""
        prompt = sum(answer.stats.prompt_tokens for answer in self._answers[:: self._choices])
        cached = sum(answer.stats.cached_tokens for answer in self._answers[:: self._choices])
        completion = sum(answer.stats.completion_tokens for answer in self._answers)
        usage: Json = {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": cached, "audio_tokens": 0},
        }
        if self._sent or any(self._predicted):
            usage["completion_tokens_details"] = self._prediction()
        return usage

    def _prediction(self) -> Json:
        """What became of predictions. One that was not sent cannot have been rejected: clients may be charged for
        what was."""
        predicted = [length for length in self._predicted for _ in range(self._choices)]
        accepted = sum(
            accepted_prediction(answer.stats, length)
            for answer, length in zip(self._answers, predicted, strict=True)
        )  # fmt: skip
        rejected = sum(predicted) - accepted if self._sent else 0
        return {"accepted_prediction_tokens": accepted, "rejected_prediction_tokens": rejected}


def accepted_prediction(stats: Stats, length: int) -> int:
    """How many of a prediction's tokens count as accepted.

    Those that were drafted by following it, up to its length; a few may differ from it, like a new name in
    place of the old.
    """
    elsewhere = sum(stats.sources[name].accepted for name in _ELSEWHERE if name in stats.sources)
    return min(stats.accepted - elsewhere, length)

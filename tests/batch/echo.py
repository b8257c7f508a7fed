"""A made-up API: requests are token ids, answers are token ids and text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lookup_spec.batch.request import Request
from lookup_spec.engine.session import Piece
from lookup_spec.params import SamplingParams
from lookup_spec.pipeline.engine import Engine
from lookup_spec.propose.prompt import Prompt


@dataclass(frozen=True)
class EchoTask:
    prompt: Prompt
    params: SamplingParams
    speculation: bool = True
    continuing: bool = True


class EchoWork:
    """``again`` times more, the answer is the next prompt."""

    def __init__(self, engine: Engine, texts: Sequence[str], params: SamplingParams, again: int) -> None:
        self.tasks = [EchoTask(engine.prompts.text(engine.prompts.encode(text)).prompt, params) for text in texts]
        self._said = [""] * len(texts)
        self._make = lambda: EchoWork(engine, [text or "x" for text in self._said], params, again - 1)
        self._again = again

    def take(self, index: int, piece: Piece) -> None:
        self._said[index] += piece.text

    def result(self) -> dict[str, Any] | EchoWork:
        return self._make() if self._again else {"said": self._said}


class EchoApi:
    """Bodies have ``texts``, and perhaps ``max_tokens`` and ``again``."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def prepare(self, request: Request) -> EchoWork:
        params = SamplingParams(max_tokens=request.body.get("max_tokens", 8))
        return EchoWork(self._engine, request.body["texts"], params, request.body.get("again", 0))

    def failure(self, error: Exception) -> tuple[int, dict[str, Any]]:
        kind = type(error).__name__
        return 400, {"error": {"message": str(error), "type": kind, "param": None, "code": kind}}

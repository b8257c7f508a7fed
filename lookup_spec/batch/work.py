"""What answering a request takes, as the pool sees it; whoever knows an API provides it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from lookup_spec.batch.parts import Part
from lookup_spec.batch.request import Request
from lookup_spec.engine.session import Piece
from lookup_spec.params import SamplingParams
from lookup_spec.propose.prompt import Prompt


class Task(Protocol):
    """One answer to generate; meanings as for :meth:`lookup_spec.pipeline.engine.Engine.submit`."""

    @property
    def prompt(self) -> Prompt: ...
    @property
    def params(self) -> SamplingParams: ...
    @property
    def speculation(self) -> bool: ...
    @property
    def continuing(self) -> bool: ...


class Work(Protocol):
    """A request that is being answered.

    Attributes:
        tasks: what to generate, all at the same time if there is room.
    """

    @property
    def tasks(self) -> Sequence[Task]: ...

    def take(self, index: int, piece: Piece) -> Part | None:
        """What a task has brought; every piece once, in order.

        Returns:
            A part of the answer that is finished by this, if it shall be kept: a request that begins anew has it.
        """

    def result(self) -> dict[str, Any] | Work:
        """The answer, once all tasks are done, or what is to be done next for it.

        Raises:
            Exception: the request fails.
        """


class Api(Protocol):
    """Knows how requests are answered. Used by one thread."""

    def prepare(self, request: Request) -> Work:
        """What answering a request takes.

        Raises:
            Exception: it can never be answered.
        """

    def failure(self, error: Exception) -> tuple[int, dict[str, Any]]:
        """An HTTP status other than 200, and ``{"error": {"message", "type", "param", "code"}}``."""

"""What routes share, as the application carries it."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import time
from typing import Any

from fastapi import Request

from lookup_server.batches.service import Batches
from lookup_server.edits.documents import Documents
from lookup_server.edits.running import RunningEdits
from lookup_server.intake import Intake
from lookup_server.metrics import Metrics
from lookup_server.openai.naming import fingerprint, named
from lookup_server.openai.replies import Head
from lookup_server.openai.requests import SamplingFields
from lookup_server.runner import Runner
from lookup_server.settings import Settings
from lookup_spec.pipeline.engine import Engine


@dataclass(frozen=True, slots=True)
class State:
    """The service behind the routes.

    Attributes:
        settings: the operator's.
        runner: runs answers.
        intake: where bodies arrive.
        documents: texts that were edited before.
        edits: which edits run.
        batches: files and batches, if they are kept.
        started: when the service did, in Unix seconds.
    """

    settings: Settings
    runner: Runner
    intake: Intake
    documents: Documents
    edits: RunningEdits
    batches: Batches | None = None
    started: int = field(default_factory=lambda: int(time()))

    @property
    def engine(self) -> Engine:
        """What answers."""
        return self.runner.engine

    @property
    def names(self) -> tuple[str, ...]:
        """What the model may be called."""
        return tuple(alias.name for alias in self.settings.served_names) or (self.engine.model_name,)

    @property
    def metrics(self) -> Metrics:
        """Counts what happens."""
        return self.runner.metrics

    def sampling(self, name: str | None, temperature: float | None = None) -> dict[str, Any]:
        """How answers are sampled under a name of the model, where a request does not say.

        Args:
            name: of the model; none means the default.
            temperature: where the name does not say either; None takes the operator's.

        Raises:
            ApiError: there is no such model.
        """
        name = self.model(name)
        decided = next((alias.sampling for alias in self.settings.served_names if alias.name == name), {})
        return {"temperature": self.settings.temperature if temperature is None else temperature, **decided}

    def model(self, name: str | None) -> str:
        """The name of the model that a caller means; no name means the default.

        Raises:
            ApiError: there is no such model.
        """
        return named(name, self.names)

    def head(self, body: SamplingFields) -> Head:
        """What all chunks of the reply to a body share.

        Raises:
            ApiError: it names a model that does not exist.
        """
        options = body.stream_options
        return Head(
            self.model(body.model),
            fingerprint(self.engine),
            include_usage=bool(options and options.include_usage),
            include_speculation=bool(options and options.include_speculation),
        )


def state_of(request: Request) -> State:
    """The service behind a request."""
    state = request.app.state.service
    assert isinstance(state, State)
    return state

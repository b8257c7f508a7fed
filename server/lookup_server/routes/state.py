"""What routes share, as the application carries it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from time import time

from fastapi import Request

from lookup_server.edits.documents import Documents
from lookup_server.edits.running import RunningEdits
from lookup_server.errors import ApiError
from lookup_server.openai.replies import Head
from lookup_server.openai.requests import SamplingFields
from lookup_server.runner import Runner
from lookup_server.settings import Settings
from lookup_spec import __version__
from lookup_spec.pipeline.engine import Engine


@dataclass(frozen=True, slots=True)
class State:
    """The service behind the routes.

    Attributes:
        settings: the operator's.
        runner: runs answers.
        documents: texts that were edited before.
        edits: which edits run.
        started: when the service did, in Unix seconds.
    """

    settings: Settings
    runner: Runner
    documents: Documents
    edits: RunningEdits
    started: int = field(default_factory=lambda: int(time()))

    @property
    def engine(self) -> Engine:
        """What answers."""
        return self.runner.engine

    @property
    def names(self) -> tuple[str, ...]:
        """What the model may be called."""
        return self.settings.served_names or (self.engine.model_name,)

    def model(self, name: str | None) -> str:
        """The name of the model that a caller means; no name means the default.

        Raises:
            ApiError: there is no such model.
        """
        if not name:
            return self.names[0]
        if name in self.names:
            return name
        message = f"The model {name!r} does not exist; this server has {', '.join(self.names)}."
        raise ApiError(404, message, param="model", code="model_not_found")

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


def fingerprint(engine: Engine) -> str:
    """Changes when the same request may get another answer: with the model or the program."""
    return f"fp_{hashlib.sha256(f'{engine.model_name} {__version__}'.encode()).hexdigest()[:12]}"


def state_of(request: Request) -> State:
    """The service behind a request."""
    state = request.app.state.service
    assert isinstance(state, State)
    return state

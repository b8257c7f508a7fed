"""Kills a service again and again while it answers batches; what comes of them is what comes undisturbed.

    python -m tests.server.killing_batches FOLDER KILLS SEED

A process of its own, so that it has one thread and can be forked: no service has to load anything.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import openai
import torch
from lookup_server.main import bind, make_server, url_of
from lookup_server.settings import Settings

from lookup_spec.pipeline.engine import Engine
from tests.batch.killing import answers_of, failures_of, forked, requests
from tests.server.tiny_service import tiny_model

T = TypeVar("T")

LINES = 60
ENDS = ("completed", "failed", "cancelled", "expired")


class Service:
    """A service at one address, run by one child process after the other.

    Args:
        engine: what each begins with.
        folder: where its batches are.
    """

    def __init__(self, engine: Engine, folder: Path) -> None:
        self._engine = engine
        self._settings = Settings(batch_folder=folder, max_sessions=2)
        self._socket = bind("127.0.0.1", 0)
        self._child: int | None = None
        self._sdk = openai.OpenAI(base_url=f"{url_of(self._socket)}v1", api_key="x", max_retries=0)

    def start(self) -> None:
        """Lets a new child listen."""
        assert self._child is None
        self._child = forked(lambda: make_server(self._engine, self._settings).run(sockets=[self._socket]))

    def kill(self) -> None:
        """Ends the child at once."""
        assert self._child is not None
        os.kill(self._child, signal.SIGKILL)
        status = os.waitpid(self._child, 0)[1]
        assert os.WIFSIGNALED(status), "the service ended by itself"
        self._child = None

    def call(self, do: Callable[[openai.OpenAI], T]) -> T:
        """Asks until the child listens and answers."""
        while True:
            try:
                return do(self._sdk)
            except openai.APIConnectionError:
                assert self._child is not None
                assert os.waitpid(self._child, os.WNOHANG) == (0, 0), "the service ended by itself"
                time.sleep(0.005)

    def begin(self, lines: bytes) -> Any:
        """Sends a batch."""
        file = self.call(lambda sdk: sdk.files.create(file=("in.jsonl", lines), purpose="batch"))
        return self.call(
            lambda sdk: sdk.batches.create(
                input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
            )
        )

    def until(self, batch: Any, done: int) -> Any:
        """The batch as soon as so many of its requests have come to their end, or it has."""
        name = batch.id
        while True:
            batch = self.call(lambda sdk: sdk.batches.retrieve(name))
            if batch.status in ENDS or batch.request_counts.completed + batch.request_counts.failed >= done:
                return batch
            time.sleep(0.002)

    def outcome(self, batch: Any) -> tuple[dict[str, Any], list[tuple[int, str | None]]]:
        """What a complete batch has brought, without what time and company decide."""
        assert batch.status == "completed", batch
        answers, failures = (
            self.call(lambda sdk: sdk.files.content(name)).text  # noqa: B023
            for name in (batch.output_file_id, batch.error_file_id)
        )
        return answers_of(answers), failures_of(failures)


def main(folder: Path, kills: int, seed: int) -> None:
    """Prints after each batch how often the service was killed so far, and in which last seen states of batches."""
    torch.set_num_threads(1)
    rng = random.Random(seed)
    engine, lines = Engine(tiny_model(), max_sessions=2), "\n".join(requests(LINES)).encode()
    service = Service(engine, folder)
    service.start()
    expected = service.outcome(service.until(service.begin(lines), LINES + 1))
    assert len(expected[0]) + len(expected[1]) == LINES
    assert expected[0]
    assert expected[1]
    killed, batches = Counter[str](), 0
    while killed.total() < kills:
        batch = service.begin(lines)
        batches += 1
        while batch.status not in ENDS:
            last = killed.total() >= kills
            done = batch.request_counts.completed + batch.request_counts.failed
            if last:
                batch = service.until(batch, LINES + 1)
            elif rng.random() < 0.9:
                batch = service.until(batch, min(done + rng.randint(0, 12), LINES))
            if not last and batch.status not in ENDS:
                time.sleep(rng.random() * 0.02)
                service.kill()
                killed[batch.status] += 1
                service.start()
        assert service.outcome(batch) == expected
        print(json.dumps({"killed": killed.total(), "states": killed, "batches": batches}), flush=True)
    service.kill()
    assert not any((folder / "batches").iterdir())


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))

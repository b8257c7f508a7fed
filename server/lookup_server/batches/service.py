"""Files and batches, as the application holds them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lookup_server.batches.store import Store
from lookup_server.batches.worker import BatchWorker
from lookup_server.openai.batch_lines import BatchApi, Defaults
from lookup_server.runner import Runner
from lookup_server.settings import Settings
from lookup_spec.batch.manifest import Facts


@dataclass(frozen=True, slots=True)
class Batches:
    """Files and batches.

    Attributes:
        store: where they are.
        worker: brings batches to their end.
    """

    store: Store
    worker: BatchWorker

    @classmethod
    def open(cls, folder: Path, runner: Runner, settings: Settings) -> Batches:
        """Opens a folder.

        Raises:
            LookupSpecError: it cannot be had.
        """
        engine = runner.engine
        api = BatchApi(
            engine,
            tuple(alias.name for alias in settings.served_names) or (engine.model_name,),
            Defaults(settings.temperature),
        )
        facts: Facts = {"model": engine.model_name, "temperature": settings.temperature}
        store = Store(folder)
        return cls(store, BatchWorker(store, runner, api, facts, settings.max_sessions))

    async def close(self) -> None:
        """Leaves all as it is, to go on later."""
        await self.worker.stop()
        self.store.close()

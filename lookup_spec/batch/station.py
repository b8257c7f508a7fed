"""An engine together with what makes answers of its work."""

from __future__ import annotations

from dataclasses import dataclass

from lookup_spec.batch.manifest import Facts
from lookup_spec.batch.pool import Pool
from lookup_spec.batch.work import Api
from lookup_spec.pipeline.engine import Engine


@dataclass(frozen=True, slots=True)
class Station:
    """A place where requests are answered.

    Attributes:
        engine: nobody else steps it.
        api: knows how requests are answered.
        facts: what answers depend on here; where these are the same, so are the answers.
        parallel: answers at the same time; None for as many as pay.
    """

    engine: Engine
    api: Api
    facts: Facts
    parallel: int | None = None

    def pool(self, *, keep_order: bool = False) -> Pool:
        """Runs requests here."""
        return Pool(self.engine, self.api, self.parallel, keep_order=keep_order)

    def close(self) -> None:
        """Ends the work here."""
        self.engine.close()

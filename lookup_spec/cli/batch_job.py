"""What a batch job is asked to do, and the doing of it."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import typer

from lookup_spec.cli.batch_report import Show
from lookup_spec.errors import BatchError, LookupSpecError

if TYPE_CHECKING:
    from lookup_spec.batch.job import Answerer, Ended
    from lookup_spec.batch.manifest import Facts
    from lookup_spec.batch.results import Place
    from lookup_spec.batch.station import Station
    from lookup_spec.batch.summaries import Summarizing
    from lookup_spec.batch.texts import Source

MOST_PARALLEL = 256
"""Answers at the same time that ``auto`` may come to."""


@dataclass(frozen=True, slots=True)
class Model:
    """Makes a station, in this process or on another machine.

    Attributes:
        spec, dtype, device: see :func:`lookup_spec.model.load.load_model`.
        calibration: see :class:`lookup_spec.pipeline.engine.Engine`.
        parallel: answers at the same time; None for as many as pay.
        names: what requests may call the model; none for its own name.
        temperature, max_tokens, seed, speculation: for requests that do not say.
        summarizing: how, if requests are texts to be summarized.
    """

    spec: str | None
    dtype: str
    device: str
    calibration: Path | None
    parallel: int | None
    names: Sequence[str]
    temperature: float
    max_tokens: int | None
    seed: int
    speculation: bool
    summarizing: Summarizing | None

    def __call__(self) -> Station:
        """Loads the model.

        Raises:
            ModelError: it cannot be loaded.
            BatchError: summaries do not fit into its context.
        """
        from lookup_server.openai.batch_lines import BatchApi, Defaults

        from lookup_spec.batch.station import Station
        from lookup_spec.batch.work import Api
        from lookup_spec.model.identity import identity
        from lookup_spec.model.load import load_model
        from lookup_spec.pipeline.engine import Engine

        logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
        loaded = load_model(
            self.spec, dtype=self.dtype, device=self.device, progress=lambda text: typer.echo(text, err=True)
        )
        facts = {"model": loaded.name, "weights": identity(loaded)}
        engine = Engine(loaded, max_sessions=self.parallel or MOST_PARALLEL, calibration=self.calibration)
        defaults = Defaults(self.temperature, self.max_tokens, self.seed, speculation=self.speculation)
        api: Api = BatchApi(engine, self.names or [engine.model_name], defaults)
        if self.summarizing is not None:
            api = self.summarizing.api(engine, api)
        return Station(engine, api, facts, self.parallel)


@dataclass(frozen=True, slots=True)
class Where:
    """On what to run.

    Attributes:
        ray: where a Ray cluster is; None for this process.
        cpus: for each engine of a cluster; None leaves it to what there is.
    """

    ray: str | None = None
    cpus: int | None = None

    @contextmanager
    def answerer(self, model: Model, *, keep_order: bool) -> Iterator[tuple[Answerer, Facts]]:
        """What answers requests, and what its answers depend on.

        Raises:
            LookupSpecError: there is no such cluster, or the model cannot be loaded there.
        """
        if self.ray is None:
            with closing(model()) as station:
                yield station.pool(keep_order=keep_order), station.facts
            return
        try:
            from lookup_spec.batch.cluster import Cluster, connected
        except ModuleNotFoundError as error:
            raise LookupSpecError(
                f"--ray needs the package {error.name}; install it with: pip install 'lookup-spec[batch,ray]'"
            ) from error
        with connected(self.ray), closing(Cluster(model, self.cpus, keep_order=keep_order)) as cluster:
            yield cluster, cluster.facts


@dataclass(frozen=True, slots=True)
class Job:
    """Requests, and where their results go.

    Attributes:
        input: where requests come from.
        source: they themselves.
        place: where results go; claimed.
        keep_order: results are in the order of the requests.
        retry: what failed before is tried again.
    """

    input: str
    source: Source
    place: Place
    keep_order: bool
    retry: bool

    def run(self, model: Model, where: Where, show: Show) -> tuple[Ended, int]:
        """Answers what is not answered yet; returns how that ended, and the number of the signal that ended it, or 0.

        Raises:
            BatchError: there is nothing to do, results are another job's, or cannot be written.
            LookupSpecError: the model cannot be loaded.
        """
        from lookup_spec.batch.job import run_job
        from lookup_spec.batch.order import alike_together
        from lookup_spec.batch.results import Results

        total = self.source.count()
        if not total:
            raise BatchError(f"There is nothing to do in {self.input}; give requests, or with --summarize texts.")
        with where.answerer(model, keep_order=self.keep_order) as (answerer, facts):
            results = Results(self.place, {**facts, **self._facts(model)}, retry=self.retry)
            with closing(results), _stopping() as came:
                left = results.unfinished(self.source.requests())
                left = left if self.keep_order else alike_together(left)
                ended = run_job(answerer, left, results, total, show=show, stopping=lambda: bool(came))
        return ended, came[0] if came else 0

    def _facts(self, model: Model) -> Facts:
        return {
            "input": Path(self.input).name,  # it may grow and move, but another input is another job
            "temperature": model.temperature,
            "max_tokens": model.max_tokens,
            "seed": model.seed,
            "keep_order": self.keep_order,
            **(model.summarizing.facts if model.summarizing is not None else {}),
        }


@contextmanager
def _stopping() -> Iterator[list[int]]:
    """A list that gets the number of a signal to stop. The second signal interrupts whatever is going on."""
    came: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        if came:
            raise KeyboardInterrupt
        came.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

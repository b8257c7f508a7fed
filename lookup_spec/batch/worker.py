"""A station that is worked by calls from elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from queue import SimpleQueue

from lookup_spec.batch.manifest import Facts
from lookup_spec.batch.parts import Part
from lookup_spec.batch.pool import Cost
from lookup_spec.batch.request import Request
from lookup_spec.batch.results import Outcome
from lookup_spec.batch.station import Station

_PATIENCE = 0.5  # seconds


@dataclass(frozen=True, slots=True)
class Report:
    """How things stand with a worker.

    Attributes:
        outcomes: what has come to its end since the last report.
        parts: of other answers, that were finished meanwhile.
        cost: of all it has done.
        running: answers that are being generated.
        parallel: as many may be; 0 if that is not known yet.
    """

    outcomes: Sequence[Outcome] = ()
    parts: Sequence[Part] = ()
    cost: Cost = field(default_factory=Cost)
    running: int = 0
    parallel: int = 0


class Worker:
    """Answers requests on a thread of its own, so that the engine never waits for whoever hands them out.

    Args:
        make: makes the station, where the worker is.
    """

    def __init__(self, make: Callable[[], Station]) -> None:
        self._make = make
        self._given: SimpleQueue[Request | None] = SimpleQueue()
        self._changed = threading.Condition()
        self._report = Report()
        self._error: BaseException | None = None
        self._closing = False

    def open(self) -> Facts:
        """Loads the model and begins; returns what answers depend on.

        Raises:
            LookupSpecError: that cannot be done here.
        """
        self._station = self._make()
        self._thread = threading.Thread(target=self._run, name="worker", daemon=True)
        self._thread.start()
        return self._station.facts

    def exchange(self, requests: Sequence[Request]) -> Report:
        """Takes requests, and reports as soon as some have come to their end, or after a while.

        Raises:
            Exception: what ended the work.
        """
        for request in requests:
            self._given.put(request)
        with self._changed:
            self._changed.wait_for(lambda: self._report.outcomes or self._error is not None, _PATIENCE)
            if self._error is not None:
                raise self._error
            report, self._report = self._report, replace(self._report, outcomes=(), parts=())
            return report

    def close(self) -> None:
        """Drops what is unfinished, and ends in order."""
        self._closing = True
        self._given.put(None)
        self._thread.join()
        self._station.close()

    def _run(self) -> None:
        pool = self._station.pool()
        feeder = pool.feeder(iter(self._given.get, None))
        try:
            for ended in pool.work(feeder):
                outcomes = [one for one in ended if isinstance(one, Outcome)]
                parts = [one for one in ended if isinstance(one, Part)]
                with self._changed:
                    outcomes, parts = [*self._report.outcomes, *outcomes], [*self._report.parts, *parts]
                    self._report = Report(outcomes, parts, replace(pool.cost), pool.running, pool.parallel)
                    if outcomes:
                        self._changed.notify()
                if self._closing:
                    break
        except BaseException as error:  # for whoever asks next
            with self._changed:
                self._error = error
                self._changed.notify()
        finally:
            self._given.put(None)
            feeder.close()

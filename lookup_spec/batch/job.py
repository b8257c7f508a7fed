"""A job from input to results."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Protocol

from lookup_spec.batch.parts import Part
from lookup_spec.batch.pool import Cost
from lookup_spec.batch.request import BadLine, Request
from lookup_spec.batch.results import Event, Results
from lookup_spec.errors import BatchError

_WINDOW = 60.0  # seconds that rates look back
_MOST_BREAKDOWNS = 20  # one after the other: then it is not the requests


class Answerer(Protocol):
    """Turns requests into outcomes: an engine here, or many elsewhere."""

    @property
    def cost(self) -> Cost: ...
    @property
    def running(self) -> int: ...

    def run(self, requests: Iterable[Request | BadLine]) -> Generator[Sequence[Event], None, None]:
        """What has come to an end, again and again."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a job stands.

    Attributes:
        answered: requests, those of earlier runs included.
        failed: lines, likewise.
        total: lines in all.
        running: answers that are being generated.
        seconds: since this run began.
        lines: that came to an end in this run.
        tokens: generated in this run.
        lines_per_second: over the last minute.
        tokens_per_second: generated, over the last minute.
        tokens_per_forward: of complete answers of this run.
        cached_share: of the prompt tokens of these, how many did not have to be computed.
    """

    answered: int
    failed: int
    total: int
    running: int
    seconds: float
    lines: int
    tokens: int
    lines_per_second: float
    tokens_per_second: float
    tokens_per_forward: float
    cached_share: float

    @property
    def eta_seconds(self) -> float | None:
        """Until the end, if it goes on like this; None if that cannot be told."""
        left = max(self.total - self.answered - self.failed, 0)
        if left and not self.lines_per_second:
            return None
        return left / self.lines_per_second if left else 0.0

    def as_dict(self) -> dict[str, Any]:
        """The numbers as JSON-ready values."""
        numbers = {name: getattr(self, name) for name in self.__slots__}
        numbers["eta_seconds"] = self.eta_seconds
        return {name: round(value, 3) if isinstance(value, float) else value for name, value in numbers.items()}


@dataclass(slots=True)
class Failures:
    """Why lines failed, by code, with an example of each.

    Attributes:
        counts: of each code.
        examples: a message of each.
    """

    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, code: str, message: str) -> None:
        """Counts one."""
        self.counts[code] += 1
        self.examples.setdefault(code, message)

    @property
    def commonest(self) -> str:
        """The code that most have, how many, and an example; empty if there are none."""
        if not self.counts:
            return ""
        [(code, count)] = self.counts.most_common(1)
        return f"{code} ({count}): {self.examples[code]}"


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended.

    Attributes:
        progress: where the job stands.
        failures: why lines failed in this run.
        stopped: it was asked to end early.
    """

    progress: Progress
    failures: Failures
    stopped: bool


def run_job(
    answerer: Answerer,
    requests: Iterable[Request | BadLine],
    results: Results,
    total: int,
    *,
    show: Callable[[Progress], None] = lambda _: None,
    stopping: Callable[[], bool] = lambda: False,
) -> Ended:
    """Answers what is not answered yet, and writes every result as soon as it is there.

    Args:
        answerer: answers requests.
        requests: what is left to do.
        results: where results go.
        total: lines in all, for the progress.
        show: told after every step where the job stands.
        stopping: asked after every step whether to end early.

    Raises:
        OutputError: results cannot be written any more.
        BatchError: nothing works any more.
    """
    failures, meter, breakdowns, stopped = Failures(), _Meter(answerer, results, total), 0, False
    with closing(answerer.run(requests)) as steps:
        for events in steps:
            for outcome in events:
                if isinstance(outcome, Part):
                    results.keep(outcome)
                    continue
                if isinstance(outcome, BadLine):
                    results.report(outcome)
                    failures.add(outcome.code, outcome.message)
                    continue
                results.write(outcome)
                if outcome.status != 200:
                    error = outcome.body["error"]
                    failures.add(str(error.get("code") or error.get("type")), str(error["message"]))
                breakdowns = breakdowns + 1 if (outcome.status or 0) >= 500 else 0
            show(meter.progress())
            if breakdowns >= _MOST_BREAKDOWNS:
                raise BatchError(
                    f"The last {breakdowns} requests all broke down: {failures.commonest} When that is mended, "
                    "go on with --retry-errors."
                )
            if stopping():
                stopped = True
                break
    return Ended(meter.progress(), failures, stopped)


class _Meter:
    """Rates of the last minute."""

    def __init__(self, answerer: Answerer, results: Results, total: int) -> None:
        self._answerer = answerer
        self._results = results
        self._total = total
        self._samples = deque([self._sample()])
        self._first = self._samples[0]

    def progress(self) -> Progress:
        now, lines, tokens = sample = self._sample()
        if now - self._samples[-1][0] >= 1:
            self._samples.append(sample)
        while len(self._samples) > 2 and now - self._samples[1][0] > _WINDOW:
            self._samples.popleft()
        then, lines_then, tokens_then = self._samples[0]
        elapsed, cost = now - then, self._answerer.cost
        return Progress(
            answered=self._results.answered,
            failed=self._results.failed,
            total=self._total,
            running=self._answerer.running,
            seconds=now - self._first[0],
            lines=lines - self._first[1],
            tokens=tokens - self._first[2],
            lines_per_second=(lines - lines_then) / elapsed if elapsed else 0.0,
            tokens_per_second=(tokens - tokens_then) / elapsed if elapsed else 0.0,
            tokens_per_forward=cost.completion_tokens / cost.forward_passes if cost.forward_passes else 0.0,
            cached_share=cost.cached_tokens / cost.prompt_tokens if cost.prompt_tokens else 0.0,
        )

    def _sample(self) -> tuple[float, int, int]:
        return time.monotonic(), self._results.answered + self._results.failed, self._answerer.cost.tokens

"""What proposing itself costs: time a step, time to take a prompt in, memory. No model takes part."""

from __future__ import annotations

import gc
import time
import tracemalloc
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.table import Table

from lookup_bench.replay import replay
from lookup_spec.propose.prompt import Prompt
from lookup_spec.propose.proposer import LookupProposer
from lookup_spec.propose.retokenizer import Retokenizer
from lookup_spec.propose.store import SegmentStore

_STORE_BYTES = 1 << 32


@dataclass(frozen=True, slots=True)
class Task:
    """One answer to propose for.

    Attributes:
        prompt: what the proposer is told.
        answer: what is replayed, by the clock.
        written: how the answer began; taken in before the clock runs.
    """

    prompt: Prompt
    answer: tuple[int, ...]
    written: tuple[int, ...] = ()

    @property
    def indexed(self) -> int:
        """Tokens to be indexed: prompt and references, but the base only once if a prediction holds it, too."""
        tokens = len(self.prompt.ids) + sum(len(reference.ids) for reference in self.prompt.references)
        if any(reference.kind == "prediction" for reference in self.prompt.references):
            tokens -= sum(span.end - span.start for span in self.prompt.spans if span.kind == "base")
        return tokens


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost over one group of tasks.

    Attributes:
        name: of the group.
        context: tokens of the prompt, the average.
        copy_steps: steps while a long copy runs.
        copy_us: their time in microseconds, the median; None if there are none.
        copy_us_p95: their 95th percentile.
        other_steps: all other steps.
        other_us: their median.
        other_us_p95: their 95th percentile.
        index_ms: milliseconds to take in a prompt and its references for each 1,000 tokens that are indexed.
        again_ms: milliseconds to take in one whole prompt a second time.
        again_segments: segments that had to be indexed then.
        bytes_per_token: memory of all that is held after the answer, the ids themselves included, for each indexed
            token of prompt, references and answer.
    """

    name: str
    context: int
    copy_steps: int
    copy_us: float | None
    copy_us_p95: float | None
    other_steps: int
    other_us: float | None
    other_us_p95: float | None
    index_ms: float
    again_ms: float
    again_segments: int
    bytes_per_token: float


def measure(name: str, tasks: Sequence[Task], retokenizer: Retokenizer, width: int, rounds: int) -> Cost:
    """Replays each task ``rounds`` times. Rounds do the same work, so of each step the least time is its own."""
    copies: list[float] = []
    others: list[float] = []
    index = again = 0.0
    segments = 0
    for task in tasks:
        index += min(_begin(SegmentStore(0), task, retokenizer) for _ in range(rounds))
        store = SegmentStore(_STORE_BYTES)
        _begin(store, task, retokenizer)
        before = len(store)
        again += min(_begin(store, task, retokenizer) for _ in range(rounds))
        segments += len(store) - before
        counts = [
            replay(LookupProposer(store, retokenizer=retokenizer), task.prompt, task.answer, width, task.written)
            for _ in range(rounds)
        ]
        least = map(min, zip(*(count.microseconds for count in counts), strict=True))
        for microseconds, copying in zip(least, counts[0].copying, strict=True):
            (copies if copying else others).append(microseconds)
    return Cost(
        name=name,
        context=sum(len(task.prompt.ids) for task in tasks) // len(tasks),
        copy_steps=len(copies),
        copy_us=_quantile(copies, 0.5),
        copy_us_p95=_quantile(copies, 0.95),
        other_steps=len(others),
        other_us=_quantile(others, 0.5),
        other_us_p95=_quantile(others, 0.95),
        index_ms=index * 1e6 / sum(task.indexed for task in tasks),
        again_ms=again * 1e3 / len(tasks),
        again_segments=segments,
        bytes_per_token=_memory(tasks[0], retokenizer, width),
    )


def _begin(store: SegmentStore, task: Task, retokenizer: Retokenizer) -> float:
    """Seconds that taking the prompt in takes."""
    proposer = LookupProposer(store, retokenizer=retokenizer)
    start = time.perf_counter()
    proposer.begin(task.prompt)
    return time.perf_counter() - start


def _memory(task: Task, retokenizer: Retokenizer, width: int) -> float:
    """Bytes a token that a whole request holds at its end, the store included."""
    compact = [array("q", ids) for ids in (task.prompt.ids, *(item.ids for item in task.prompt.references))]
    gc.collect()
    tracemalloc.start()
    try:
        # Fresh ids, so that they are counted, too.
        ids, *references = (tuple(part) for part in compact)
        named = tuple(replace(old, ids=new) for old, new in zip(task.prompt.references, references, strict=True))
        proposer = LookupProposer(SegmentStore(_STORE_BYTES), retokenizer=retokenizer)
        replay(proposer, Prompt(ids, task.prompt.spans, named), task.answer, width, task.written)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] / (task.indexed + len(task.written) + len(task.answer))
    finally:
        tracemalloc.stop()


def _quantile(values: list[float], fraction: float) -> float | None:
    return sorted(values)[int(fraction * (len(values) - 1))] if values else None


def table(rows: Sequence[Cost]) -> Table:
    """The costs, one group a line."""
    made = Table(title="What proposing costs: µs a step (median / 95th percentile)")
    made.add_column("text", no_wrap=True)
    for name in ("tokens", "in a copy", "otherwise", "index, ms/1,000", "again, ms", "bytes/token"):
        made.add_column(name, justify="right")
    for row in rows:
        made.add_row(
            row.name, f"{row.context:,}", _pair(row.copy_us, row.copy_us_p95), _pair(row.other_us, row.other_us_p95),
            f"{row.index_ms:.2f}", f"{row.again_ms:.2f}", f"{row.bytes_per_token:.0f}",
        )  # fmt: skip
    return made


def _pair(median: float | None, high: float | None) -> str:
    return "-" if median is None or high is None else f"{median:.0f} / {high:.0f}"

"""Many clients at once: what all of them get in a second, how long each waits, and whether every answer is its own."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median

from lookup_bench.e2e import prompt_of
from lookup_bench.tasks import Task
from lookup_spec.engine.session import Session
from lookup_spec.params import SamplingParams
from lookup_spec.pipeline.engine import Engine
from lookup_spec.propose.prompt import Prompt


@dataclass(frozen=True, slots=True)
class Job:
    """One request.

    Attributes:
        name: of the task.
        prompt: as the product would send it.
        params: greedy, with the task's most tokens.
    """

    name: str
    prompt: Prompt
    params: SamplingParams


@dataclass(frozen=True, slots=True)
class Row:
    """One number of clients, with or without speculation.

    Attributes:
        clients: requests under way at any time, until the last ones end.
        speculation: whether drafts were allowed.
        requests: answered in all.
        tokens: of all answers.
        seconds: from the first request to the last answer, prompts included.
        tokens_per_second: of all clients together.
        over_plain: that, divided by the same without speculation; 1 for that itself.
        first_p50: seconds from a request to the first piece of its answer, median.
        first_p95: the same, 95th percentile.
        gap_p50: seconds from one piece of an answer to the next, median.
        gap_p95: the same, 95th percentile.
        passes: forward passes.
        drafted: checked drafts, all requests together.
        accepted: those of them that were right.
        different: answers that are not those given alone without speculation.
        kv_tokens: most tokens that there was memory for at one time.
        resident_bytes: the process's memory at the end; 0 where that cannot be told.
    """

    clients: int
    speculation: bool
    requests: int
    tokens: int
    seconds: float
    tokens_per_second: float
    over_plain: float
    first_p50: float
    first_p95: float
    gap_p50: float
    gap_p95: float
    passes: int
    drafted: int
    accepted: int
    different: int
    kv_tokens: int
    resident_bytes: int


@dataclass(slots=True)
class _Run:
    """One request under way."""

    job: Job
    session: Session
    started: float
    pieces: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)

    def take(self) -> bool:
        """Takes what has come; true if that was the last of it."""
        while (piece := self.session.take()) is not None:
            if piece.token_ids:
                self.pieces.append(time.perf_counter())
                self.tokens.extend(piece.token_ids)
            if piece.finish_reason is not None:
                return True
        return False


@dataclass(slots=True)
class _Totals:
    """Everything that happened with one number of clients."""

    seconds: float = 0.0
    passes: int = 0
    kv_tokens: int = 0
    runs: list[_Run] = field(default_factory=list)


def jobs_of(engine: Engine, tasks: Sequence[Task], most: int) -> list[Job]:
    """Requests that the product would send for these tasks, each answered with no more than ``most`` tokens."""
    return [
        Job(task.name, prompt_of(engine, task), engine.sampling(max_tokens=min(task.max_tokens, most)))
        for task in tasks
    ]


def sweep(
    engine: Engine,
    jobs: Sequence[Job],
    clients: Sequence[int],
    requests: int,
    rounds: int,
    told: Callable[[str], None],
) -> list[Row]:
    """Lets so many clients at a time ask one thing after the other, with speculation and without in turn.

    Every client is a tenant of its own, so none is helped by what another had computed.

    Args:
        engine: keeps nothing of ended requests.
        jobs: a client's requests are these in turn; each client begins with another one.
        clients: how many at a time, one or several numbers.
        requests: so many of each client.
        rounds: how often everything is done; throughput is the median.
        told: hears what runs.
    """
    told("each request alone")
    alone = {job.name: _alone(engine, job) for job in jobs}
    rows: list[Row] = []
    for number in clients:
        totals: dict[bool, list[_Totals]] = {False: [], True: []}
        for turn in range(rounds):
            for speculation in (turn % 2 == 1, turn % 2 == 0):  # so that neither is always the first
                told(f"{number} clients, {'with' if speculation else 'without'} speculation")
                totals[speculation].append(_run(engine, jobs, number, requests, speculation))
        plain = _row(number, False, totals[False], alone, None)
        rows += [plain, _row(number, True, totals[True], alone, plain.tokens_per_second)]
    return rows


def _alone(engine: Engine, job: Job) -> list[int]:
    session = engine.submit(job.prompt, job.params, speculation=False)
    return [token for piece in engine.follow(session) for token in piece.token_ids]


def _run(engine: Engine, jobs: Sequence[Job], clients: int, requests: int, speculation: bool) -> _Totals:
    totals = _Totals()
    waiting = [iter([jobs[(client + n) % len(jobs)] for n in range(requests)]) for client in range(clients)]
    running: dict[int, _Run] = {}

    def ask(client: int) -> None:
        """The client's next request, if it has one left."""
        running.pop(client, None)
        if (job := next(waiting[client], None)) is not None:
            started = time.perf_counter()
            session = engine.submit(job.prompt, job.params, speculation=speculation, tenant=f"client {client}")
            running[client] = _Run(job, session, started)
            totals.runs.append(running[client])

    began = time.perf_counter()
    for client in range(clients):
        ask(client)
    while running:
        engine.step()
        totals.passes += 1
        totals.kv_tokens = max(totals.kv_tokens, engine.load.running_tokens)
        for client, run in list(running.items()):
            if run.take():
                ask(client)
    totals.seconds = time.perf_counter() - began
    return totals


def _row(
    clients: int, speculation: bool, totals: Sequence[_Totals], alone: dict[str, list[int]], plain: float | None
) -> Row:
    runs = [run for total in totals for run in total.runs]
    stats = [run.session.stats() for run in runs]
    tokens = sum(len(run.tokens) for run in totals[0].runs)
    seconds = median(total.seconds for total in totals)
    first = [run.pieces[0] - run.started for run in runs if run.pieces]
    gaps = [after - before for run in runs for before, after in pairwise(run.pieces)]
    return Row(
        clients=clients,
        speculation=speculation,
        requests=len(totals[0].runs),
        tokens=tokens,
        seconds=seconds,
        tokens_per_second=tokens / seconds,
        over_plain=1.0 if plain is None else tokens / seconds / plain,
        first_p50=percentile(first, 0.5),
        first_p95=percentile(first, 0.95),
        gap_p50=percentile(gaps, 0.5),
        gap_p95=percentile(gaps, 0.95),
        passes=round(sum(total.passes for total in totals) / len(totals)),
        drafted=round(sum(each.drafted for each in stats) / len(totals)),
        accepted=round(sum(each.accepted for each in stats) / len(totals)),
        different=sum(run.tokens != alone[run.job.name] for run in runs),
        kv_tokens=max(total.kv_tokens for total in totals),
        resident_bytes=_resident(),
    )


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that so large a share of them does not exceed; 0 of none."""
    ordered = sorted(values)
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)] if ordered else 0.0


def _resident() -> int:
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:")), 0)

"""Works through batches, behind everybody who waits for an answer."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from lookup_server.batches.records import Record
from lookup_server.batches.store import UNFINISHED, Store
from lookup_server.calls import Call
from lookup_server.errors import ApiError
from lookup_server.openai.batch_lines import BatchApi
from lookup_server.runner import Runner
from lookup_spec.batch.job import Failures
from lookup_spec.batch.manifest import Facts
from lookup_spec.batch.request import BadLine, Lines, Request
from lookup_spec.batch.results import Outcome, Place, Results
from lookup_spec.batch.seen import Known, Seen
from lookup_spec.errors import BatchError

_log = logging.getLogger(__name__)

MOST_LINES = 50_000
_MOST_ERRORS = 100  # of a file that is refused
_SWEEP_SECONDS = 60.0
_LEFT = {
    "cancelled": ("batch_cancelled", "The batch was cancelled before this request was answered."),
    "expired": ("batch_expired", "The batch's time was over before this request was answered."),
}


class BatchWorker:
    """Brings batches to their end, those too that another run of the service has left.

    Only for the event loop's thread.

    Args:
        store: where batches and files are.
        runner: runs answers.
        api: knows how requests are answered.
        facts: what answers depend on besides the requests; a batch whose answers began with others fails.
        parallel: requests at the same time, of all batches together.
    """

    def __init__(self, store: Store, runner: Runner, api: BatchApi, facts: Facts, parallel: int) -> None:
        self._store = store
        self._runner = runner
        self._api = api
        self._facts = facts
        self._parallel = parallel
        self._places = asyncio.Semaphore(parallel)
        self._running: dict[str, asyncio.Task[None]] = {}
        self._wake: dict[str, asyncio.Event] = {}
        self._sweeper: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Goes on with all that is unfinished."""
        self._sweeper = asyncio.create_task(self._sweep())
        for tenant, batch in self._store.records.all("batch"):
            if batch["status"] in UNFINISHED:
                self.take(tenant, batch)

    async def stop(self) -> None:
        """Leaves everything as it is, to go on later."""
        tasks = [*self._running.values(), *([self._sweeper] if self._sweeper else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def take(self, tenant: str, batch: Record) -> None:
        """Begins to work on a batch."""
        self._wake[batch["id"]] = asyncio.Event()
        task = asyncio.create_task(self._bring_to_end(tenant, batch))
        self._running[batch["id"]] = task
        task.add_done_callback(lambda _: (self._running.pop(batch["id"], None), self._wake.pop(batch["id"], None)))

    def cancel(self, tenant: str, name: str) -> Record | None:
        """Asks a batch to end with what it has; returns it, or None if there is none."""
        batch = self._store.records.get("batch", tenant, name)
        if batch is not None and batch["status"] in ("validating", "in_progress"):
            batch = self._change(batch, status="cancelling", cancelling_at=_now())
            if name in self._wake:
                self._wake[name].set()
        return batch

    async def _bring_to_end(self, tenant: str, batch: Record) -> None:
        try:
            await self._work(tenant, batch)
        except Exception as error:
            if not isinstance(error, BatchError):
                _log.exception("the batch %s broke down", batch["id"])
            reason = str(error) if isinstance(error, BatchError) else "The server met an unexpected error."
            fault = {"code": "server_error", "message": reason, "param": None, "line": None}
            self._finish(tenant, self._current(tenant, batch), "failed", [fault])

    async def _work(self, tenant: str, batch: Record) -> None:
        file = self._store.file(tenant, batch["input_file_id"])
        if file is None:
            raise BatchError("The input file is no longer there.")
        path = self._store.path(file)
        if not batch["request_counts"]["total"]:
            total, wrong = await asyncio.to_thread(_validate, path, batch["endpoint"])
            batch = self._current(tenant, batch)
            if wrong:
                self._finish(tenant, batch, "failed", wrong)
                return
            batch = self._change(batch, request_counts={"total": total, "completed": 0, "failed": 0})
        if batch["status"] == "validating":
            batch = self._change(batch, status="in_progress", in_progress_at=_now())
        place, failures = _place(self._store.work(batch)), Failures()
        if batch["ending"] is None:
            results = await asyncio.to_thread(Results, place, self._facts)
            with closing(results), path.open("rb") as source:
                requests = results.unfinished(Lines(source).requests())
                ending = await self._answer(tenant, batch, requests, results, failures)
            batch = self._current(tenant, batch)
            status = "cancelling" if ending == "cancelled" else "finalizing"
            batch = self._change(batch, status=status, finalizing_at=_now(), ending=ending)
        if batch["ending"] != "completed":
            await asyncio.to_thread(self._leave, path, place, batch["ending"])
        faults = []
        if failures.commonest and not await asyncio.to_thread(_lines, place.answers):
            message = f"No request was answered; most often: {failures.commonest}"
            faults.append({"code": "all_failed", "message": message, "param": None, "line": None})
        await asyncio.to_thread(self._finish, tenant, batch, batch["ending"], faults)

    async def _answer(
        self, tenant: str, batch: Record, requests: Iterator[Request | BadLine], results: Results, failures: Failures
    ) -> str:
        """Answers requests until there are no more, or the batch is to end early; returns why it ended."""
        self._count(tenant, batch, results)
        ending = {asyncio.create_task(self._wake[batch["id"]].wait())}
        running: set[asyncio.Task[Outcome | None]] = set()
        more = True
        try:
            while True:
                left = batch["expires_at"] - time.time()
                if self._current(tenant, batch)["status"] == "cancelling":
                    return "cancelled"
                if left <= 0:
                    return "expired"
                while more and len(running) < self._parallel:
                    request = await asyncio.to_thread(next, requests, None)
                    if request is None:
                        more = False
                    elif isinstance(request, BadLine):
                        results.report(request)
                    else:
                        running.add(asyncio.create_task(self._outcome(tenant, request)))
                if not running:
                    return "completed"
                done, _ = await asyncio.wait({*running, *ending}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
                for task in done & running:
                    running.discard(task)
                    self._note(await task, results, failures)  # type: ignore[arg-type]  # the other one is not among these
                self._count(tenant, batch, results)
        finally:
            for task in (*running, *ending):
                task.cancel()
            await asyncio.gather(*running, *ending, return_exceptions=True)

    def _note(self, outcome: Outcome, results: Results, failures: Failures) -> None:
        results.write(outcome)
        if outcome.status != 200:
            error = outcome.body["error"]
            failures.add(str(error.get("code") or error.get("type")), str(error["message"]))

    async def _outcome(self, tenant: str, request: Request) -> Outcome:
        """Answers a request; while there is no place for it, it waits."""
        try:
            async with self._places:
                return Outcome(request, 200, await self._answered(tenant, request))
        except Exception as error:  # one request's failure is not the others'
            if isinstance(error, ApiError) and error.code == "shutting_down":
                await asyncio.Event().wait()  # until this task is cancelled: the request is left for the next run
            return Outcome(request, *self._api.failure(error))

    async def _answered(self, tenant: str, request: Request) -> dict[str, Any]:
        if request.problem:
            raise ApiError(400, request.problem)
        work = await asyncio.to_thread(self._api.prepare, request)
        async with self._runner.open(work.tasks, Call(tenant=tenant)) as pieces:
            async for index, piece in pieces:
                work.take(index, piece)
        return work.result()

    def _leave(self, source: Path, place: Place, ending: str) -> None:
        """Says of all that is left of a batch that ended early why it was not answered."""
        code, message = _LEFT[ending]
        body = {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}
        with closing(Results(place, self._facts)) as results, source.open("rb") as file:
            for request in results.unfinished(Lines(file).requests()):
                if isinstance(request, Request):
                    results.write(Outcome(request, None, body))

    def _finish(self, tenant: str, batch: Record, status: str, faults: Sequence[Mapping[str, Any]]) -> None:
        """Makes files of what results there are, and ends the batch, all at once."""
        place = _place(self._store.work(batch))
        counts = {**batch["request_counts"], "completed": _lines(place.answers), "failed": _lines(place.failures)}
        changes: dict[str, Any] = {"request_counts": counts, "usage": _usage(place.answers)}
        if faults:
            changes["errors"] = {"object": "list", "data": list(faults)}
        lifetime = (batch["output_expires_after"] or {}).get("seconds")
        with self._store.records.together():
            for kind, path in (("output", place.answers), ("error", place.failures)):
                if _lines(path):
                    file = self._store.add(tenant, path, f"{batch['id']}_{kind}.jsonl", "batch_output", lifetime)
                    changes[f"{kind}_file_id"] = file["id"]
            self._change(batch, status=status, **{f"{status}_at": _now()}, **changes)
        self._store.clear(batch)

    def _count(self, tenant: str, batch: Record, results: Results) -> None:
        current = self._current(tenant, batch)
        counts = {**current["request_counts"], "completed": results.answered, "failed": results.failed}
        if counts != current["request_counts"]:
            self._change(current, request_counts=counts)

    def _current(self, tenant: str, batch: Record) -> Record:
        """The batch as it is now: somebody may have cancelled it."""
        return self._store.records.get("batch", tenant, batch["id"]) or batch

    def _change(self, batch: Record, **changes: Any) -> Record:
        batch = {**batch, **changes}
        self._store.records.update(batch)
        return batch

    async def _sweep(self) -> None:
        while True:
            await asyncio.to_thread(self._store.sweep)
            await asyncio.sleep(_SWEEP_SECONDS)


def _validate(path: Path, endpoint: str) -> tuple[int, list[dict[str, Any]]]:
    """How many requests a file has, and what is wrong with it, the first hundred faults."""
    wrong: list[dict[str, Any]] = []
    total, seen = 0, Seen()
    with closing(seen), path.open("rb") as file:
        for request in Lines(file).requests():
            total += 1
            fault = _fault(request, endpoint, seen)
            if fault is not None:
                wrong.append({"code": fault[0], "message": fault[1], "param": None, "line": request.line})
            if total > MOST_LINES:
                message = f"The file has more than {MOST_LINES} requests; send several batches."
                wrong.append({"code": "too_many_requests", "message": message, "param": None, "line": request.line})
            if len(wrong) >= _MOST_ERRORS or total > MOST_LINES:
                break
    if not total:
        wrong.append({"code": "empty_file", "message": "The file has no requests.", "param": None, "line": None})
    return total, wrong


def _fault(request: Request | BadLine, endpoint: str, seen: Seen) -> tuple[str, str] | None:
    if isinstance(request, BadLine):
        return request.code, request.message
    known, first = seen.take(request.custom_id, request.digest, request.line)
    if known is Known.REPEATED:
        return "duplicate_custom_id", f"Lines {first} and {request.line} have the same custom_id."
    if request.problem:
        return "invalid_request", f"Line {request.line}: {request.problem}"
    if request.url != endpoint:
        return "mismatched_url", f"Line {request.line} has the url {request.url!r}, but the batch is for {endpoint}."
    return None


def _place(folder: Path) -> Place:
    return Place.beside(folder / "out.jsonl")


def _usage(path: Path) -> dict[str, Any]:
    counts: Counter[str] = Counter()
    with suppress(FileNotFoundError), path.open("rb") as file:
        for line in file:
            usage = json.loads(line)["response"]["body"]["usage"]
            counts["input"] += usage["prompt_tokens"]
            counts["output"] += usage["completion_tokens"]
            counts["cached"] += usage["prompt_tokens_details"]["cached_tokens"]
    return {
        "input_tokens": counts["input"],
        "input_tokens_details": {"cached_tokens": counts["cached"]},
        "output_tokens": counts["output"],
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": counts["input"] + counts["output"],
    }


def _lines(path: Path) -> int:
    with suppress(FileNotFoundError), path.open("rb") as file:
        return sum(1 for _ in file)
    return 0


def _now() -> int:
    return int(time.time())

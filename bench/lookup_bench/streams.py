"""Many edit streams at once, over HTTP, for a while: is any lost or garbled, and does memory stay flat?"""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lookup_bench.load import percentile
from lookup_bench.tasks import Task
from lookup_spec.errors import LookupSpecError

_PATIENCE = 600.0  # seconds without a byte after which a stream counts as lost


@dataclass(frozen=True, slots=True)
class Report:
    """What came of it.

    Attributes:
        clients: streams open at any time.
        seconds: from the first request to the end of the last.
        streams: complete ones.
        lost: those that ended with an error, early, or not at all.
        garbled: those whose hunks, order or result differ from those of the same edit made alone.
        tokens: of all complete streams.
        first_p50: seconds from a request to its first hunk, or to its end where nothing changes: median.
        first_p95: the same, 95th percentile.
        resident_bytes: the service's memory: when all streams had begun, and at the quarters of the time; empty where
            it cannot be told.
        reasons: what happened to lost ones, the first few.
    """

    clients: int
    seconds: float
    streams: int
    lost: int
    garbled: int
    tokens: int
    first_p50: float
    first_p95: float
    resident_bytes: tuple[int, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Stream:
    """One complete stream."""

    hunks: tuple[str, ...]
    result: str
    tokens: int
    first: float


@dataclass(slots=True)
class _Totals:
    """What all clients share."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    done: list[_Stream] = field(default_factory=list)
    garbled: int = 0
    reasons: list[str] = field(default_factory=list)


def press(
    url: str,
    tasks: Sequence[Task],
    clients: int,
    seconds: float,
    *,
    key: str | None = None,
    most: int = 256,
    pid: int | None = None,
    told: Callable[[str], None] = lambda _: None,
) -> Report:
    """Makes every edit alone, and then, for so long, as many at a time as there are clients.

    Args:
        url: of the service.
        tasks: edits.
        clients: streams at a time.
        seconds: after which no new stream is begun.
        key: for the service, if it wants one.
        most: tokens of an answer.
        pid: of the service, where it runs on this machine.
        told: what goes on.

    Raises:
        LookupSpecError: the service does not answer, or an edit cannot even be made alone.
    """
    alone = []
    for task in tasks:
        try:
            alone.append(_edit(url, task, key, most))
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise LookupSpecError(f"The edit {task.name!r} failed at {url} ({error}); is the service there?") from error
        told(f"alone: {task.name}, {alone[-1].tokens} tokens")
    totals = _Totals()
    begun = time.monotonic()

    def client(number: int) -> None:
        turn = number
        while time.monotonic() - begun < seconds:
            index = turn % len(tasks)
            turn += 1
            try:
                stream = _edit(url, tasks[index], key, most)
            except (OSError, ValueError, http.client.HTTPException) as error:
                with totals.lock:
                    totals.reasons.append(f"{tasks[index].name}: {error or type(error).__name__}")
                continue
            with totals.lock:
                totals.done.append(stream)
                same = (stream.hunks, stream.result) == (alone[index].hunks, alone[index].result)
                totals.garbled += not same

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    resident = []
    for quarter in range(5):
        time.sleep(max(begun + quarter * seconds / 4 - time.monotonic(), 0))
        if pid is not None and (held := resident_bytes(pid)) is not None:
            resident.append(held)
        told(f"{time.monotonic() - begun:.0f} s: {len(totals.done)} streams, {len(totals.reasons)} lost")
    for thread in threads:
        thread.join()
    firsts = [stream.first for stream in totals.done]
    return Report(
        clients,
        time.monotonic() - begun,
        len(totals.done),
        len(totals.reasons),
        totals.garbled,
        sum(stream.tokens for stream in totals.done),
        percentile(firsts, 0.5),
        percentile(firsts, 0.95),
        tuple(resident),
        tuple(totals.reasons[:5]),
    )


def resident_bytes(pid: int) -> int | None:
    """Memory that a process has; None where the system does not tell."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096
    except OSError:
        return None


def _edit(url: str, task: Task, key: str | None, most: int) -> _Stream:
    """One edit, streamed.

    Raises:
        ValueError: the stream is not complete, or not as the protocol has it.
        OSError: the connection broke.
    """
    where = urlsplit(url)
    kind = http.client.HTTPSConnection if where.scheme == "https" else http.client.HTTPConnection
    connection = kind(where.hostname or "", where.port, timeout=_PATIENCE)
    body = {
        "document": {"uri": "", "text": task.text, "language_id": "python"},
        "instruction": task.instruction,
        "options": {"max_tokens": most},
        "stream": True,
    }
    headers = {"content-type": "application/json", **({"authorization": f"Bearer {key}"} if key else {})}
    started = time.monotonic()
    try:
        connection.request("POST", f"{where.path.rstrip('/')}/v1/edits", json.dumps(body), headers)
        reply = connection.getresponse()
        if reply.status != 200:
            raise ValueError(f"status {reply.status}: {reply.read(300)!r}")
        return _read(reply, started)
    finally:
        connection.close()


def _read(reply: http.client.HTTPResponse, started: float) -> _Stream:
    hunks: list[str] = []
    first: float | None = None
    for number, event in enumerate(_events(reply)):
        if event.get("seq") != number:
            raise ValueError(f"event {number} says that it is number {event.get('seq')}")
        if event["type"] == "error":
            raise ValueError(str(event["error"]["message"]))
        if event["type"] == "hunk" and event["state"] == "closed":
            first = first or time.monotonic() - started
            hunks.append(json.dumps((event["old"], event["text"])))
        if event["type"] == "done":
            total = time.monotonic() - started
            return _Stream(
                tuple(hunks), event["result_sha256"], event["usage"]["completion_tokens"], first or total
            )  # fmt: skip
    raise ValueError("the stream ended without its last event")


def _events(reply: http.client.HTTPResponse) -> Any:
    for line in reply:
        if line.startswith(b"data: "):
            yield json.loads(line.removeprefix(b"data: "))

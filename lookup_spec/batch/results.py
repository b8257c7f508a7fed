"""A job's results on disk: answers in one file, failures in another, exactly one line for each request."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from filelock import FileLock, Timeout

from lookup_spec.batch.line_file import LineFile
from lookup_spec.batch.lines import Line
from lookup_spec.batch.manifest import Facts, bind
from lookup_spec.batch.parts import Part, Parts
from lookup_spec.batch.request import BadLine, Request
from lookup_spec.batch.seen import Known, Seen
from lookup_spec.errors import BusyJobError, OtherJobError, OutputError

_ID = "batch_req_"
_RESULT = re.compile(
    rb'\{"id":"' + _ID.encode() + rb'([0-9a-f]{32})","custom_id":(null|"(?:[^"\\]|\\.)*"),.*\}\n', re.DOTALL
)

# Some programs take these for line ends. In JSON they stand inside strings only, where escapes mean the same.
_LINE_ENDS = str.maketrans({end: f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"})


@dataclass(frozen=True, slots=True)
class Place:
    """Where a job's files are.

    Attributes:
        answers: one line for each request that was answered.
        failures: one line for each request that was not, and for each line of input that was none.
        parts: of answers that are not complete; there only while there are some.
        manifest: what the job is.
        lock: held while somebody works on them.
    """

    answers: Path
    failures: Path
    parts: Path
    manifest: Path
    lock: Path

    @classmethod
    def beside(cls, answers: Path, failures: Path | None = None) -> Place:
        """The usual names: to ``out.jsonl`` belong ``out.errors.jsonl``, ``out.parts.jsonl`` and so on."""
        stem = answers.with_suffix("") if answers.suffix else answers
        return cls(
            answers,
            failures or stem.with_name(f"{stem.name}.errors.jsonl"),
            stem.with_name(f"{stem.name}.parts.jsonl"),
            stem.with_name(f"{stem.name}.manifest.json"),
            stem.with_name(f"{stem.name}.lock"),
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a request.

    Attributes:
        request: what was asked.
        status: HTTP status; 200 is an answer, everything else a failure. None if it was not tried.
        body: the answer, or ``{"error": {"message", "code", …}}``.
    """

    request: Request
    status: int | None
    body: dict[str, Any]


Event: TypeAlias = Outcome | Part | BadLine
"""What happens in the course of a job."""


@contextmanager
def claimed(place: Place) -> Iterator[None]:
    """Keeps all others off a job's files; a process that ends, however it does, lets go of them.

    Raises:
        BusyJobError: somebody else has them.
        OutputError: nothing can be written there.
    """
    if not place.lock.parent.is_dir():
        raise OutputError(f"There is no folder {place.lock.parent}; make it first.")
    lock = FileLock(place.lock)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise BusyJobError(f"Another run is at work here: it holds {place.lock}.") from None
    except OSError as error:
        raise OutputError(f"Cannot write {place.lock}: {error.strerror}.") from error
    try:
        yield
    finally:
        lock.release()


class Results:
    """The results of one job.

    Args:
        place: where they are; it must be claimed.
        facts: what answers depend on besides the requests; the results must have been made with the same.
        retry: put earlier failures aside (``…errors.jsonl.old``) and let their requests be tried again.

    Raises:
        OtherJobError: they are another job's.
        OutputError: they cannot be read or written.

    Attributes:
        answered: requests answered so far, those of earlier runs included.
        failed: lines that failed so far, likewise.
    """

    def __init__(self, place: Place, facts: Facts, *, retry: bool = False) -> None:
        self.answered = self.failed = 0
        files = (place.answers, place.failures, place.parts)
        fresh = not any(path.is_file() and path.stat().st_size > 0 for path in files)
        bind(place.manifest, facts, fresh=fresh)
        if retry:
            _put_aside(place.failures)
        with ExitStack() as stack:
            self._answers = _opened(place.answers, stack)
            self._failures = _opened(place.failures, stack)
            self._seen = Seen()
            stack.callback(self._seen.close)
            self.answered = self._load(self._answers)
            self.failed = self._load(self._failures)
            self._parts = Parts(place.parts, self._seen.has)
            stack.callback(self._parts.close)
            self._close = stack.pop_all().close

    def unfinished(self, requests: Iterable[Request | BadLine]) -> Iterator[Request | BadLine]:
        """What is left to do of all requests, and lines that have to be reported. To be called once."""
        for one in requests:
            found = self._checked(one) if isinstance(one, Request) else one
            if isinstance(found, BadLine) and self._seen.is_reported(found.digest):
                continue
            if found is not None:
                yield found

    def _checked(self, request: Request) -> Request | BadLine | None:
        """The request, or None if it is finished, or what is wrong with it."""
        known, first = self._seen.take(request.custom_id, request.digest, request.line)
        line = Line(request.line, request.digest.encode())
        match known:
            case Known.NEW:
                kept = self._parts.take(request.custom_id)
                return replace(request, kept=kept) if kept else request
            case Known.FINISHED:
                return None
            case Known.REPEATED:
                reason = f"has the custom_id {request.custom_id!r} of line {first}; give each request its own."
                return BadLine.of(line, "duplicate_custom_id", reason)
            case Known.CHANGED:
                reason = f"asks something else than {request.custom_id!r} did before; give it a new custom_id."
                return BadLine.of(line, "request_changed", reason)

    def write(self, outcome: Outcome) -> None:
        """Adds what became of a request.

        Raises:
            OutputError: it cannot be written.
        """
        request, ok = outcome.request, outcome.status == 200
        error = None if ok else {"line": request.line, **_error(outcome.body)}
        response = None
        if outcome.status is not None:
            response = {"status_code": outcome.status, "request_id": f"req_{request.digest}", "body": outcome.body}
        line = _line(request.digest, request.custom_id, response, error)
        if ok:
            self._answers.append(line)
            self.answered += 1
        else:
            self._failures.append(line)
            self.failed += 1
        self._parts.drop(request.custom_id)

    def keep(self, part: Part) -> None:
        """Adds a part of an answer that is not complete: the next run need not make it again.

        Raises:
            OutputError: it cannot be written.
        """
        self._parts.keep(part)

    def report(self, bad: BadLine) -> None:
        """Adds that a line of the input is no request.

        Its result has no ``custom_id``: what that names, if it does, is another line's.

        Raises:
            OutputError: it cannot be written.
        """
        error = {"line": bad.line, "code": bad.code, "message": bad.message, "param": None}
        self._failures.append(_line(bad.digest, None, None, error))
        self.failed += 1

    def close(self) -> None:
        """Makes all results survive a loss of power.

        Raises:
            OutputError: that is not certain.
        """
        self._close()

    def _load(self, file: LineFile) -> int:
        count = 0
        for count, line in enumerate(file.lines(), 1):
            found = _RESULT.fullmatch(line)
            if found is None:
                raise OtherJobError(f"Line {count} of {file.path} is no result of a batch job; remove it.")
            name = json.loads(found[2])
            if not self._seen.finished(name, found[1].decode()):
                raise OtherJobError(
                    f"Line {count} of {file.path} has a second result for {name!r}; remove one of them."
                )
        return count


def _opened(path: Path, stack: ExitStack) -> LineFile:
    file = LineFile(path)
    stack.callback(file.close)
    return file


def _put_aside(path: Path) -> None:
    try:
        path.replace(path.with_name(f"{path.name}.old"))
    except FileNotFoundError:
        return
    except OSError as error:
        raise OutputError(f"Cannot rename {path}: {error.strerror}.") from error


def _error(body: dict[str, Any]) -> dict[str, Any]:
    error = body["error"]
    return {name: error.get(name) for name in ("code", "message", "param")}


def _line(digest: str, custom_id: str | None, response: dict[str, Any] | None, error: dict[str, Any] | None) -> bytes:
    value = {"id": f"{_ID}{digest}", "custom_id": custom_id, "response": response, "error": error}
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return f"{text.translate(_LINE_ENDS)}\n".encode(errors="replace")

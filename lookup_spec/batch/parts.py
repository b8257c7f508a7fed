"""Parts of answers that are finished while the answers are not, so that they need not be made again."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lookup_spec.batch.line_file import LineFile, replace_lines
from lookup_spec.errors import OtherJobError, OutputError

_ID = "batch_part_"
_PART = re.compile(
    rb'\{"id":"' + _ID.encode() + rb'([0-9a-f]{32})","custom_id":("(?:[^"\\]|\\.)*"),"said":(\{.*\})\}\n'
)
_MOST_DEAD = 16 << 20  # bytes


@dataclass(frozen=True, slots=True)
class Part:
    """What a step towards an answer has brought.

    Attributes:
        custom_id: of the request whose answer it is for.
        digest: 32 hexadecimal digits that change with everything that was asked in this step.
        said: what came of it, as JSON.
    """

    custom_id: str
    digest: str
    said: dict[str, Any]


class Parts:
    """The finished parts of unfinished answers, on disk: one appended line for each.

    Lines of answers that are complete by now mean nothing, and are taken out when the file is opened, or when they are
    most of it. There is no file while there is nothing to keep.

    Args:
        path: where it is, or will be.
        finished: tells whether the request of a name has come to its end.

    Raises:
        OtherJobError: the file holds something else.
        OutputError: it cannot be read or written.
    """

    def __init__(self, path: Path, finished: Callable[[str], bool]) -> None:
        self._path = path
        self._file: LineFile | None = None
        self._sizes: Counter[str] = Counter()  # bytes in the file, of requests that are not finished
        self._kept: dict[str, dict[str, dict[str, Any]]] = {}
        if not path.exists():
            return
        self._file = LineFile(path)
        try:
            for line, part in _read(self._file):
                if not finished(part.custom_id):
                    self._sizes[part.custom_id] += len(line)
                    self._kept.setdefault(part.custom_id, {})[part.digest] = part.said
            if self._dead:
                self._clear()
        except BaseException:
            if self._file is not None:
                self._file.close()
            raise

    def take(self, custom_id: str) -> Mapping[str, dict[str, Any]]:
        """What earlier runs have kept for a request, by the steps' digests; it is given out once."""
        return self._kept.pop(custom_id, {})

    def keep(self, part: Part) -> None:
        """Adds one.

        Raises:
            OutputError: it cannot be written.
        """
        if self._file is None:
            self._file = LineFile(self._path)
        fields = {"id": f"{_ID}{part.digest}", "custom_id": part.custom_id, "said": part.said}
        line = json.dumps(fields, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        self._file.append(line)
        self._sizes[part.custom_id] += len(line)

    def drop(self, custom_id: str) -> None:
        """Forgets those of a request that has come to its end.

        Raises:
            OutputError: the file cannot be written.
        """
        if self._sizes.pop(custom_id, 0) and self._dead > max(_MOST_DEAD, self._sizes.total()):
            self._clear()

    def close(self) -> None:
        """Makes all parts survive a loss of power, or removes the file if there are none.

        Raises:
            OutputError: that is not certain.
        """
        if self._file is None:
            return
        self._file.close()
        if not self._sizes:
            try:
                self._path.unlink(missing_ok=True)
            except OSError as error:
                raise OutputError(f"Cannot remove {self._path}: {error.strerror}.") from error

    @property
    def _dead(self) -> int:
        """Bytes in the file that mean nothing any more."""
        return 0 if self._file is None else self._file.size - self._sizes.total()

    def _clear(self) -> None:
        """Takes out what means nothing any more."""
        assert self._file is not None
        file, self._file = self._file, None  # it must be closed to be replaced, and may stay so
        file.close()
        replace_lines(self._path, (line for line, part in _read(file) if part.custom_id in self._sizes))
        self._file = LineFile(self._path)


def _read(file: LineFile) -> Iterator[tuple[bytes, Part]]:
    for number, line in enumerate(file.lines(), 1):
        found = _PART.fullmatch(line)
        if found is None:
            raise OtherJobError(f"Line {number} of {file.path} is no part of a batch job's answer; remove it.")
        yield line, Part(json.loads(found[2]), found[1].decode(), json.loads(found[3]))

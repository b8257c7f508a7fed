"""A file that only grows, by whole lines."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from lookup_spec.errors import OutputError

_SYNC_SECONDS = 1.0
_BLOCK = 1 << 16


def replace_lines(path: Path, lines: Iterable[bytes]) -> None:
    """Gives a file other lines, all at once or not at all.

    Args:
        path: need not be there.
        lines: each with its newline.

    Raises:
        OutputError: it cannot be written.
    """
    temporary = path.with_name(f".{path.name}.new")
    try:
        with temporary.open("wb") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise OutputError(f"Cannot write {path}: {error.strerror}.") from error


class LineFile:
    """Appends lines so that each is in the file whole, or not at all.

    A line is written by one call, so that ending the process at any moment loses none that was written before. What was
    written a second ago or earlier survives a loss of power, too. A torn last line is cut off when the file is opened.

    Args:
        path: made if it is not there.

    Raises:
        OutputError: it cannot be had.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
        except OSError as error:
            raise OutputError(f"Cannot write {path}: {error.strerror}.") from error
        try:
            if not stat.S_ISREG(os.fstat(self._handle).st_mode):
                raise OutputError(f"{path} is no ordinary file; results need one to resume from.")
            self.size = self._repaired()
        except OSError as error:
            os.close(self._handle)
            raise OutputError(f"Cannot write {path}: {error.strerror}.") from error
        except OutputError:
            os.close(self._handle)
            raise
        self._synced = time.monotonic()

    def append(self, line: bytes) -> None:
        """Adds a line, which must end with its only newline.

        Raises:
            OutputError: it cannot be written; the file then is as before.
        """
        rest = memoryview(line)
        try:
            while rest:
                rest = rest[os.write(self._handle, rest) :]
            self.size += len(line)
            if time.monotonic() - self._synced > _SYNC_SECONDS:
                self.sync()
        except OSError as error:
            self._take_back()
            raise OutputError(
                f"Cannot write {self.path}: {error.strerror}. What is finished is kept; the same command goes on."
            ) from error

    def sync(self) -> None:
        """Makes what was written survive a loss of power."""
        os.fsync(self._handle)
        self._synced = time.monotonic()

    def close(self) -> None:
        """Ends the work on the file.

        Raises:
            OutputError: it is not certain that all of it will survive.
        """
        try:
            self.sync()
        except OSError as error:
            raise OutputError(f"Cannot write {self.path}: {error.strerror}.") from error
        finally:
            os.close(self._handle)

    def lines(self) -> Iterator[bytes]:
        """All lines, each with its newline."""
        with self.path.open("rb") as file:
            yield from file

    def _take_back(self) -> None:
        try:
            os.ftruncate(self._handle, self.size)
        except OSError:
            return  # what is torn is cut off when the file is opened again

    def _repaired(self) -> int:
        """Cuts off what stands behind the last newline; returns what remains."""
        place = size = os.fstat(self._handle).st_size
        while place:
            start = max(place - _BLOCK, 0)
            os.lseek(self._handle, start, os.SEEK_SET)
            found = os.read(self._handle, place - start).rfind(b"\n")
            if found >= 0:
                place = start + found + 1
                break
            place = start
        if place < size:
            os.ftruncate(self._handle, place)
        return place

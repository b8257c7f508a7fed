"""Which requests are known, without holding them in memory."""

from __future__ import annotations

import hashlib
import sqlite3
from enum import Enum
from typing import Any

from lookup_spec.errors import OutputError

_CACHE = 16 << 10  # KiB


class Known(Enum):
    """What is known about a request."""

    NEW = "new"
    """Nothing; it is known from now on."""
    FINISHED = "finished"
    """An earlier run answered it."""
    CHANGED = "changed"
    """An earlier run answered another request of its name."""
    REPEATED = "repeated"
    """Another line of the same input has its name."""


class Seen:
    """Names of requests, in a temporary table on disk that nobody else sees and that is gone with the process.

    Each takes about 60 bytes of disk; of memory the table takes at most 16 MiB, however many there are. It is made anew
    from the results whenever a job is opened: the results themselves are the only truth.
    """

    def __init__(self) -> None:
        # Used by one thread after the other.
        self._table = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        for pragma in ("journal_mode=OFF", "synchronous=OFF", f"cache_size=-{_CACHE}"):
            self._run(f"PRAGMA {pragma}")
        self._run("CREATE TABLE seen (name BLOB PRIMARY KEY, request BLOB, line INTEGER) WITHOUT ROWID")

    def finished(self, name: str | None, digest: str) -> bool:
        """Notes a result of an earlier run; false if it had one of that name before.

        Args:
            name: the request's; None for a line that was none.
            digest: the request's, or the bad line's.
        """
        request = bytes.fromhex(digest)
        key = _key(name) if name is not None else _bad(request)
        return self._run("INSERT OR IGNORE INTO seen VALUES (?, ?, NULL)", key, request).rowcount == 1

    def take(self, name: str, digest: str, line: int) -> tuple[Known, int]:
        """What is known about a request that stands in a line of the input, and which line has its name."""
        key, request = _key(name), bytes.fromhex(digest)
        row = self._run("SELECT request, line FROM seen WHERE name = ?", key).fetchone()
        if row is None:
            self._run("INSERT INTO seen VALUES (?, ?, ?)", key, request, line)
            return Known.NEW, line
        if row[1] is not None:
            return Known.REPEATED, row[1]
        self._run("UPDATE seen SET line = ? WHERE name = ?", line, key)
        return Known.FINISHED if row[0] == request else Known.CHANGED, line

    def has(self, name: str) -> bool:
        """Whether a name is known."""
        return self._run("SELECT 1 FROM seen WHERE name = ?", _key(name)).fetchone() is not None

    def is_reported(self, digest: str) -> bool:
        """Whether an earlier run has reported a bad line."""
        return self._run("SELECT 1 FROM seen WHERE name = ?", _bad(bytes.fromhex(digest))).fetchone() is not None

    def _run(self, statement: str, *values: Any) -> sqlite3.Cursor:
        try:
            return self._table.execute(statement, values)
        except sqlite3.OperationalError as error:
            raise OutputError(
                f"Cannot note which requests are known ({error}); point TMPDIR to a disk with 60 bytes for each."
            ) from error

    def close(self) -> None:
        """Forgets everything."""
        self._table.close()


def _key(name: str) -> bytes:
    return hashlib.blake2b(name.encode(), digest_size=16, person=b"request").digest()


def _bad(digest: bytes) -> bytes:
    return hashlib.blake2b(digest, digest_size=16, person=b"line").digest()

"""What is known about files and batches, kept in one SQLite file.

The standard library's sqlite3 does: two tables of JSON documents, found by tenant and id, written by one process. A
mapper of objects to tables would bring a dependency and hide that there is nothing to map.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

from lookup_spec.errors import LookupSpecError

Record: TypeAlias = dict[str, Any]
"""A file or a batch in OpenAI's form."""
Kind = Literal["file", "batch"]

_FORM = 1


class Records:
    """Files and batches by id, each with its tenant, whose alone it is. Safe for use by several threads.

    What was written survives the end of the process; a loss of power may take the last changes, but breaks nothing.

    Args:
        path: of the database.

    Raises:
        LookupSpecError: it cannot be had.
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.RLock()
        try:
            self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=NORMAL")
            self._database.execute("PRAGMA locking_mode=EXCLUSIVE")
            [form] = self._database.execute("PRAGMA user_version").fetchone()
            if form not in (0, _FORM):
                raise LookupSpecError(f"{path} was written by another version of this program; name another folder.")
            self._database.execute(
                "CREATE TABLE IF NOT EXISTS records (number INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, "
                "kind TEXT NOT NULL, tenant TEXT NOT NULL, record TEXT NOT NULL)"
            )
            self._database.execute("CREATE INDEX IF NOT EXISTS mine ON records (kind, tenant, number)")
            self._database.execute(f"PRAGMA user_version={_FORM}")
        except sqlite3.Error as error:
            raise LookupSpecError(f"Cannot keep files and batches in {path} ({error}); is it in use?") from error

    @contextmanager
    def together(self) -> Iterator[None]:
        """All changes within are made, or none."""
        with self._lock:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")

    def add(self, kind: Kind, tenant: str, record: Record) -> Record:
        """Keeps a new record, which gets an id."""
        record = {"id": f"{kind}-{secrets.token_hex(12)}", **record}
        self._run(
            "INSERT INTO records (id, kind, tenant, record) VALUES (?, ?, ?, ?)",
            (record["id"], kind, tenant, json.dumps(record)),
        )
        return record

    def get(self, kind: Kind, tenant: str, name: str) -> Record | None:
        """A record of a tenant's; None if there is none."""
        rows = self._run("SELECT record FROM records WHERE id = ? AND kind = ? AND tenant = ?", (name, kind, tenant))
        return json.loads(rows[0][0]) if rows else None

    def update(self, record: Record) -> None:
        """Writes a record anew."""
        self._run("UPDATE records SET record = ? WHERE id = ?", (json.dumps(record), record["id"]))

    def remove(self, name: str) -> None:
        """Forgets a record."""
        self._run("DELETE FROM records WHERE id = ?", (name,))

    def page(self, kind: Kind, tenant: str, after: str | None, limit: int, *, ascending: bool = False) -> list[Record]:
        """A tenant's records, the newest first unless told otherwise.

        Args:
            kind: of record.
            tenant: whose.
            after: the id of the one before the first.
            limit: how many at most.
            ascending: the oldest first.
        """
        sign, order = (">", "ASC") if ascending else ("<", "DESC")
        behind = f"AND number {sign} (SELECT number FROM records WHERE id = ? AND tenant = ?)" if after else ""
        values = (kind, tenant, *((after, tenant) if after else ()), limit)
        statement = f"SELECT record FROM records WHERE kind = ? AND tenant = ? {behind} ORDER BY number {order} LIMIT ?"
        return [json.loads(row[0]) for row in self._run(statement, values)]

    def all(self, kind: Kind) -> list[tuple[str, Record]]:
        """All records of a kind, each with its tenant, the oldest first."""
        rows = self._run("SELECT tenant, record FROM records WHERE kind = ? ORDER BY number", (kind,))
        return [(tenant, json.loads(record)) for tenant, record in rows]

    def close(self) -> None:
        """Ends the work on the database."""
        with self._lock:
            self._database.close()

    def _run(self, statement: str, values: tuple[Any, ...]) -> list[Any]:
        with self._lock:
            return self._database.execute(statement, values).fetchall()

"""Files on disk, and what is known about them and about batches."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from filelock import FileLock, Timeout

from lookup_server.batches.records import Record, Records
from lookup_spec.errors import LookupSpecError

UNFINISHED = ("validating", "in_progress", "finalizing", "cancelling")


class Store:
    """A folder with files, the work of batches, and the records of both. One process at a time has it.

    Args:
        folder: made if it is not there.

    Raises:
        LookupSpecError: it cannot be had.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            for part in ("files", "batches"):
                (folder / part).mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = FileLock(folder / "lock", thread_local=False)  # opened and closed by different threads
            self._lock.acquire(timeout=0)
        except Timeout:
            raise LookupSpecError(f"Another service uses {folder}; name another folder with --batch-dir.") from None
        except OSError as error:
            raise LookupSpecError(f"Cannot write {folder}: {error.strerror}.") from error
        self.records = Records(folder / "records.sqlite")
        self.tidy()

    def path(self, file: Record) -> Path:
        """Where a file's bytes are."""
        return self._folder / "files" / str(file["id"])

    def work(self, batch: Record) -> Path:
        """A folder for the results of a batch while they grow."""
        folder = self._folder / "batches" / str(batch["id"])
        folder.mkdir(exist_ok=True, mode=0o700)
        return folder

    def arriving(self) -> Path:
        """A new place for a file that is not complete."""
        return self._folder / "files" / f"arriving-{os.urandom(8).hex()}"

    def add(self, tenant: str, source: Path, name: str, purpose: str, lifetime: int | None) -> Record:
        """Takes a complete file in.

        Args:
            tenant: whose it is.
            source: where it lies; it may be removed afterwards.
            name: what its sender calls it.
            purpose: what for, in OpenAI's words.
            lifetime: seconds after which it may be removed; None keeps it.
        """
        now = int(time.time())
        record = {
            "object": "file",
            "bytes": source.stat().st_size,
            "created_at": now,
            "expires_at": None if lifetime is None else now + lifetime,
            "filename": name,
            "purpose": purpose,
            "status": "processed",
            "status_details": None,
        }
        file = self.records.add("file", tenant, record)
        try:
            os.link(source, self.path(file))
        except OSError:  # not every file system can give a file two names
            shutil.copyfile(source, self.path(file))
        return file

    def file(self, tenant: str, name: str) -> Record | None:
        """A tenant's file; None if there is none, or no longer."""
        found = self.records.get("file", tenant, name)
        return None if found is None or _expired(found) else found

    def remove(self, file: Record) -> None:
        """Removes a file."""
        self.records.remove(str(file["id"]))
        self.path(file).unlink(missing_ok=True)

    def is_needed(self, tenant: str, file: Record) -> bool:
        """Whether a batch that is not finished reads a file."""
        return any(
            whose == tenant and batch["input_file_id"] == file["id"] and batch["status"] in UNFINISHED
            for whose, batch in self.records.all("batch")
        )

    def tidy(self) -> None:
        """Removes bytes that no file has: of uploads and batches that the end of the process cut short."""
        known = {file["id"] for _, file in self.records.all("file")}
        for path in (self._folder / "files").iterdir():
            if path.name not in known:
                path.unlink(missing_ok=True)

    def sweep(self) -> None:
        """Removes files whose time is over."""
        for tenant, file in self.records.all("file"):
            if _expired(file) and not self.is_needed(tenant, file):
                self.remove(file)

    def clear(self, batch: Record) -> None:
        """Removes the folder of a batch that is finished."""
        shutil.rmtree(self._folder / "batches" / str(batch["id"]), ignore_errors=True)

    def close(self) -> None:
        """Lets others have it."""
        self.records.close()
        self._lock.release()


def _expired(file: Record) -> bool:
    return file["expires_at"] is not None and file["expires_at"] <= time.time()

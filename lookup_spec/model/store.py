"""Files that are made once, by one process, whole or not at all.

Everything that is derived from a model (joined files, converted weights) can be made again from what is
installed, so it lives in a cache directory that may be deleted at any time.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import platformdirs
from filelock import FileLock, Timeout

from lookup_spec.errors import ModelError

Progress = Callable[[str], None]
"""Takes one sentence for the user about work that takes a while."""


def cache_root() -> Path:
    """The cache directory: ``LOOKUP_SPEC_CACHE`` if set, else the platform's place for caches."""
    return Path(os.environ.get("LOOKUP_SPEC_CACHE") or platformdirs.user_cache_dir("lookup-spec"))


def make_once(target: Path, make: Callable[[Path], None], progress: Progress) -> Path:
    """Makes ``target`` (a file or a directory) unless it exists, and returns it.

    ``make`` writes to the path it is given, beside the target; only when it returns is the result renamed
    into place, so a target that exists is complete. One process makes, others wait for it. What a killed
    process left behind is swept by the next one that makes the same target.

    Raises:
        ModelError: the cache directory cannot be written.
    """
    if target.exists():
        return target
    partial = target.with_name(f".{target.name}.partial")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(target.with_name(f".{target.name}.lock"))
        _acquire(lock, target, progress)
    except OSError as error:
        raise ModelError(_unwritable(error)) from error
    try:
        if not target.exists():
            _remove(partial)
            make(partial)
            _flush(partial)
            partial.rename(target)
    except OSError as error:
        raise ModelError(_unwritable(error)) from error
    finally:
        _remove(partial)
        lock.release()
    return target


def require_space(size: int, purpose: str) -> None:
    """Refuses early when the cache directory's disk has less than ``size`` bytes free."""
    root = cache_root()
    root.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(root).free
    if free < size:
        raise ModelError(
            f"{purpose} needs {size / 1e9:.1f} GB in {root}, where {free / 1e9:.1f} GB are free; "
            "free some space or set LOOKUP_SPEC_CACHE to another directory."
        )


def _acquire(lock: FileLock, target: Path, progress: Progress) -> None:
    try:
        lock.acquire(timeout=0)
    except Timeout:
        progress(f"Another process is making {target}; waiting for it.")
        lock.acquire()


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    """Brings the contents to the disk before the rename does, so that a power cut leaves no hollow file."""
    for file in path.rglob("*") if path.is_dir() else (path,):
        with file.open("rb+") as opened:
            os.fsync(opened.fileno())


def _unwritable(error: OSError) -> str:
    return (
        f"Preparing a model in the cache directory {cache_root()} failed ({error}); "
        "LOOKUP_SPEC_CACHE can name another directory."
    )

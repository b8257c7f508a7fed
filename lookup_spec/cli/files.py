"""Reading a file whole and replacing it all at once."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from lookup_spec.errors import EditError


def read_file(file: Path) -> bytes:
    """The bytes of a file.

    Raises:
        EditError: there is no such file, or it cannot be read.
    """
    try:
        return file.read_bytes()
    except FileNotFoundError as error:
        raise EditError(f"There is no file {file}.") from error
    except OSError as error:
        raise EditError(f"Cannot read {file}: {error.strerror}.") from error


def replace_file(file: Path, before: bytes, after: bytes) -> None:
    """Replaces a file's bytes atomically, keeping its mode and, where permitted, its owner.

    The new bytes go to a temporary file in the same folder, reach the disk, and take the old file's name in one step.
    A symbolic link stays one: the file it points to is replaced.

    Args:
        file: the file.
        before: what it must still hold.
        after: what it shall hold.

    Raises:
        EditError: it was changed meanwhile, or cannot be written; it then is as it was.
    """
    target = file.resolve()
    if read_file(target) != before:
        raise EditError(f"{file} was changed by somebody else meanwhile; it was left as it is.")
    temporary: Path | None = None
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        temporary = Path(name)
        with os.fdopen(handle, "wb") as stream:
            stream.write(after)
            stream.flush()
            os.fsync(stream.fileno())
        shutil.copymode(target, temporary)
        if hasattr(os, "chown"):
            with suppress(PermissionError):
                os.chown(temporary, target.stat().st_uid, target.stat().st_gid)
        if not os.access(target, os.W_OK):
            raise PermissionError(0, "it is read-only")
        temporary.replace(target)
    except OSError as error:
        raise EditError(f"Cannot write {file}: {error.strerror}; it is unchanged.") from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)

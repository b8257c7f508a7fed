"""Fifty texts that any Debian with Python has: licences, pages of Python's manual, and its smaller modules."""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from pathlib import Path
from pydoc_data.topics import topics

from lookup_bench.records import RecordError

_LICENCES = Path("/usr/share/common-licenses")
_SHARES = {"licence": 8, "manual": 18, "module": 24}
_BYTES = {"licence": (1_000, 20_000), "manual": (1_500, 5_000), "module": (1_500, 6_000)}


def write_texts(folder: Path) -> int:
    """Writes the texts into a new folder; returns how many there are.

    Args:
        folder: made if it is not there.

    Raises:
        RecordError: it cannot be written.
    """
    count = 0
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for kind, share in _SHARES.items():
            low, high = _BYTES[kind]
            fitting = sorted((len(data), name, data) for name, data in _texts(kind) if low < len(data) < high)
            for _, name, data in fitting[:share]:
                (folder / f"{kind}-{name}").write_bytes(data)
                count += 1
    except OSError as error:
        raise RecordError(f"Cannot write the texts to {folder}: {error.strerror}.") from error
    return count


def _texts(kind: str) -> Iterator[tuple[str, bytes]]:
    if kind == "manual":
        yield from ((f"{name}.txt", text.encode()) for name, text in topics.items())
        return
    files = _LICENCES.glob("*") if kind == "licence" else Path(sysconfig.get_path("stdlib")).glob("*.py")
    yield from ((path.name, path.read_bytes()) for path in files if path.is_file() and not path.is_symlink())

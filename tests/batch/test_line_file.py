"""Lines on disk: each whole or not there."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from lookup_spec.batch.line_file import LineFile
from lookup_spec.errors import OutputError


def test_cut_anywhere_a_file_opens_with_its_whole_lines(tmp_path: Path) -> None:
    """And goes on behind them; blocks that are read backwards may end anywhere in them."""
    path = tmp_path / "lines"
    lines = [b"first\n", b"x" * 70_000 + b"\n", b"third\n"]
    text = b"".join(lines)
    for size in [*range(12), 70_000, 70_006, 70_007, 70_008, len(text) - 1, len(text)]:
        path.write_bytes(text[:size])
        file = LineFile(path)
        file.append(b"next\n")
        file.close()
        kept = text[: text.rfind(b"\n", 0, size) + 1]
        assert path.read_bytes() == kept + b"next\n"


def test_a_full_disk_takes_back_what_it_could_not_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lines"
    file = LineFile(path)
    file.append(b"first\n")
    write, room = os.write, 4

    def full(handle: int, data: Any) -> int:
        nonlocal room
        if not room:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = write(handle, data[:room])
        room -= written
        return written

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OutputError, match=r"No space left on device\..*same command goes on"):
            file.append(b"second\n")
    assert path.read_bytes() == b"first\n"
    file.append(b"third\n")
    file.close()
    assert path.read_bytes() == b"first\nthird\n"


def test_what_cannot_be_a_file_of_results_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "folder", tmp_path / "none" / "lines", Path(os.devnull)):
        with pytest.raises(OutputError, match=str(path)):
            LineFile(path)

"""Files made once are whole, made by one process, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lookup_spec.errors import ModelError
from lookup_spec.model.store import cache_root, make_once, require_space


def ignore(_: str) -> None:
    """Nobody listens."""


def write(target: Path) -> None:
    target.write_bytes(b"whole")


def visible(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if not path.name.endswith(".lock"))


def test_made_once_and_then_found(tmp_path: Path) -> None:
    """The second call finds what the first one made."""
    made: list[Path] = []

    def make(target: Path) -> None:
        made.append(target)
        write(target)

    for _ in range(2):
        assert make_once(tmp_path / "deep" / "file", make, ignore).read_bytes() == b"whole"
    assert len(made) == 1
    assert visible(tmp_path / "deep") == ["file"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("no"), ModelError("no")])
def test_nothing_is_left_when_making_fails(tmp_path: Path, error: BaseException) -> None:
    """An error or an interrupt half-way leaves neither a partial file nor a held lock."""

    def fail(target: Path) -> None:
        target.write_bytes(b"half")
        raise error

    with pytest.raises(type(error)):
        make_once(tmp_path / "file", fail, ignore)
    assert visible(tmp_path) == []
    assert make_once(tmp_path / "file", write, ignore).read_bytes() == b"whole"


def test_directories_are_made_whole_too(tmp_path: Path) -> None:
    """A directory appears with all its files, or not at all."""

    def fail(target: Path) -> None:
        target.mkdir()
        write(target / "a")
        raise ValueError("no")

    def make(target: Path) -> None:
        target.mkdir()
        write(target / "a")

    with pytest.raises(ValueError, match="no"):
        make_once(tmp_path / "directory", fail, ignore)
    assert visible(tmp_path) == []
    make_once(tmp_path / "directory", make, ignore)
    assert visible(tmp_path / "directory") == ["a"]


SLOW_MAKER = """
import pathlib, sys, time
from lookup_spec.model.store import make_once
target, log = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
def make(partial):
    partial.write_bytes(b"half")
    with log.open("a") as file:
        file.write("made\\n")
    time.sleep(float(sys.argv[3]))
    partial.write_bytes(b"whole")
assert make_once(target, make, print).read_bytes() == b"whole"
"""


def maker(target: Path, log: Path, seconds: float) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SLOW_MAKER, str(target), str(log), str(seconds)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )


def wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.01)


def test_two_processes_make_it_once(tmp_path: Path) -> None:
    """Of two processes that need one file at once, one makes it; the other says that it waits."""
    target, log = tmp_path / "file", tmp_path / "log"
    first = maker(target, log, 2.0)
    wait_for(log)
    second = maker(target, log, 2.0)
    outputs = [process.communicate(timeout=60)[0] for process in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0)
    assert log.read_text() == "made\n"
    assert "waiting" in outputs[1]


def test_what_a_killed_process_left_is_swept(tmp_path: Path) -> None:
    """A process killed half-way leaves no usable file, and the next one makes it and sweeps the remains."""
    target, log = tmp_path / "file", tmp_path / "log"
    process = maker(target, log, 60.0)
    wait_for(log)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    assert not target.exists()
    assert any(name.endswith(".partial") for name in visible(tmp_path))
    assert make_once(target, write, ignore).read_bytes() == b"whole"
    assert visible(tmp_path) == ["file", "log"]


def test_an_unusable_cache_directory_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache directory that cannot be made is named, with the way to choose another."""
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("LOOKUP_SPEC_CACHE", str(tmp_path / "file"))
    with pytest.raises(ModelError, match="LOOKUP_SPEC_CACHE"):
        make_once(cache_root() / "x" / "y", write, ignore)


def test_missing_space_is_told_beforehand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More bytes than the disk has are refused with both figures; few are not."""
    monkeypatch.setenv("LOOKUP_SPEC_CACHE", str(tmp_path))
    require_space(1, "This")
    with pytest.raises(ModelError, match=r"This needs 1000000000\.0 GB in .* are free"):
        require_space(10**18, "This")

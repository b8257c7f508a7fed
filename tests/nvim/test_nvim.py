"""The Neovim plugin in a headless Neovim, with recorded edits."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.replay import RECORDINGS, Replay, replay

PLUGIN = Path(__file__).parents[2] / "editors" / "nvim"
NVIM = shutil.which("nvim") or "nvim"
# What its command can ask for; the others need fields that it does not have.
PLAIN = {name: one for name, one in RECORDINGS.items() if "instruction" in one["request"]}
EDITED = [name for name, one in PLAIN.items() if one["final"] != one["base"]]

pytestmark = pytest.mark.skipif(
    not (shutil.which("nvim") and shutil.which("curl")), reason="Neovim or curl is not installed"
)


@pytest.fixture(scope="module")
def service() -> Iterator[Replay]:
    with replay() as one:
        yield one


@pytest.fixture(autouse=True)
def _as_usual(service: Replay) -> None:
    service.delay, service.fill, service.gone = 0.0, "a + b", 0
    service.bodies.clear()


def do(folder: Path, url: str, *steps: Any) -> dict[str, Any]:
    """Runs steps in Neovim; what was said, and what is left of the edit."""
    todo, result = folder / "todo.json", folder / "result.json"
    todo.write_text(json.dumps(steps))
    names = {"LOOKUP_SPEC_URL": url, "LOOKUP_SPEC_TODO": str(todo), "LOOKUP_SPEC_RESULT": str(result)}
    home = {
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
        "XDG_DATA_HOME": str(folder),
        "XDG_STATE_HOME": str(folder),
    }
    script = Path(__file__).with_name("run.lua")
    start = ["--headless", "-n", "-i", "NONE", "-u", "NONE", "--cmd", f"set runtimepath^={PLUGIN}"]
    subprocess.run(
        [NVIM, *start, "-c", "runtime plugin/lookup_spec.lua", "-c", f"luafile {script}"],
        env={**os.environ, **home, **names},
        timeout=60,
        check=True,
        capture_output=True,
    )
    found: dict[str, Any] = json.loads(result.read_text())
    assert found["problem"] == ""
    return found


def written(folder: Path, name: str) -> Path:
    path = folder / f"{name}.py"
    path.write_bytes(RECORDINGS[name]["base"].encode())
    return path


def lines_of(name: str) -> dict[str, int]:
    """The range of a recording, as the command counts lines."""
    range_ = PLAIN[name]["request"].get("range")
    return {} if range_ is None else {"first": range_["start"]["line"] + 1, "last": range_["end"]["line"]}


@pytest.mark.parametrize("name", PLAIN)
def test_a_recorded_edit_makes_the_recorded_file(service: Replay, tmp_path: Path, name: str) -> None:
    """All changes accepted and the buffer written: byte for byte, whatever its line ends; or nothing, and why."""
    path = written(tmp_path, name)
    found = do(
        tmp_path,
        service.url,
        ["open", str(path)],
        ["edit", lines_of(name)],
        ["ended"],
        *([["command", "LookupSpecAccept!"]] if name in EDITED else []),
        # Else the editor itself ends the last line of what it writes.
        ["command", "set nofixendofline"],
        ["command", "write"],
    )
    assert path.read_bytes() == RECORDINGS[name]["final"].encode()
    assert (found["hunks"], found["marks"]) == (0, 0)
    end = RECORDINGS[name]["events"][-1]
    if end["type"] == "error":
        assert end["error"]["message"] in found["said"][-1]


@pytest.mark.parametrize("name", ["several-hunks", "crlf"])
def test_one_undo_takes_an_edit_back(service: Replay, tmp_path: Path, name: str) -> None:
    path = written(tmp_path, name)
    do(
        tmp_path,
        service.url,
        ["open", str(path)],
        ["edit", {}],
        ["ended"],
        ["command", "LookupSpecAccept!"],
        ["command", "undo"],
        ["command", "write!"],
    )
    assert path.read_bytes() == RECORDINGS[name]["base"].encode()


def test_changes_are_accepted_and_rejected_one_by_one(service: Replay, tmp_path: Path) -> None:
    path = written(tmp_path, "several-hunks")
    found = do(
        tmp_path,
        service.url,
        ["open", str(path)],
        ["edit", {}],
        ["ended"],
        ["command", "LookupSpecAccept"],
        ["command", "LookupSpecReject"],
        ["command", "write"],
    )
    text = RECORDINGS["several-hunks"]["base"].replace("compute_row(2)", "None")
    assert path.read_text() == text
    assert found["hunks"] == 1


def test_the_user_types_meanwhile_and_only_what_was_touched_is_left_out(service: Replay, tmp_path: Path) -> None:
    """Lines above move the changes along; a line that was touched keeps what the user made of it."""
    service.delay = 0.02
    path = written(tmp_path, "several-hunks")
    do(
        tmp_path,
        service.url,
        ["open", str(path)],
        ["edit", {}],
        ["hunks", 1],
        ["insert", {"row": 0, "column": 0, "lines": ["# mine", ""]}],
        ["insert", {"row": 5, "column": 0, "lines": ["my_"]}],
        ["ended"],
        ["command", "LookupSpecAccept!"],
        ["command", "write"],
    )
    final = RECORDINGS["several-hunks"]["final"]
    expected = final.replace("row_4 = compute_row(4)\n", "row_4 = compute_row(4)\nmy_row_5 = compute_row(5)\n")
    assert path.read_text() == "# mine\n" + expected


def test_cancel_stops_the_service_and_changes_nothing(service: Replay, tmp_path: Path) -> None:
    service.delay = 0.02
    path = written(tmp_path, "several-hunks")
    found = do(
        tmp_path,
        service.url,
        ["open", str(path)],
        ["edit", {}],
        ["hunks", 1],
        ["command", "LookupSpecCancel"],
        ["command", "write"],
    )
    assert path.read_text() == RECORDINGS["several-hunks"]["base"]
    assert (found["hunks"], found["marks"]) == (0, 0)


def test_ghost_text_appears_and_is_accepted(service: Replay, tmp_path: Path) -> None:
    path = tmp_path / "ghost.py"
    path.write_text("def add(a, b):\n    return \n")
    service.fill = "a + b\n\n\nadd(1, 2)"
    found = do(tmp_path, service.url, ["open", str(path)], ["command", "call cursor(2, 99)"], ["command", "normal! A "],
               ["command", "startinsert!"], ["ghost", True], ["command", "write"])  # fmt: skip
    assert found["said"] == ["a + b\n\n\nadd(1, 2)"]
    assert "a + b\n\n\nadd(1, 2)" in path.read_text()
    body = service.bodies[-1][1]
    assert (body["input_prefix"], body["input_suffix"]) == (
        "def add(a, b):\n",
        "\n" if body["prompt"][-1] == " " else " \n",
    )


def test_without_a_service_edits_say_what_to_do_and_completions_nothing(tmp_path: Path) -> None:
    path = tmp_path / "one-line.py"
    path.write_text("a = 1\n")
    found = do(tmp_path, "http://127.0.0.1:9", ["open", str(path)], ["edit", {}], ["ended"], ["ghost", False])
    assert "lookup-spec serve" in found["said"][0]
    assert found["said"][1:] == ["nil"]


def test_the_help_names_every_command() -> None:
    page = (PLUGIN / "doc" / "lookup-spec.txt").read_text()
    commands = (PLUGIN / "plugin" / "lookup_spec.lua").read_text().split("nvim_create_user_command('")[1:]
    assert {name for one in commands if f":{(name := one.split(chr(39))[0])}" not in page} == set()

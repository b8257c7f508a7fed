"""``lookup-spec edit`` as a user meets it: the real command, a scripted model."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fakes.scribe import Scribe

from lookup_spec import cli
from lookup_spec.cli import options
from lookup_spec.model.load import LoadedModel
from tests.server.tiny_service import tiny_model

BEFORE = "def add(a, b):\n    return a - b\n\n\nprint(add(1, 2))\n"
AFTER = BEFORE.replace("a - b", "a + b")
ANSWER = AFTER + "```"


class Ran(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    return tiny_model()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "sum.py"
    path.write_bytes(BEFORE.encode())
    return path


@pytest.fixture
def edit(loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: object, answer: str = ANSWER, ended: bool = True) -> Ran:
        monkeypatch.setattr(options, "engine", lambda *_, **__: Scribe(loaded, answer, ended=ended))
        monkeypatch.setattr("sys.argv", ["lookup-spec", "edit", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        output = capsys.readouterr()
        code = caught.value.code
        return Ran(code if isinstance(code, int) else int(code is not None), output.out, output.err)

    return run


def test_the_default_prints_a_diff_and_leaves_the_file(edit: Any, file: Path) -> None:
    ran = edit(file, "--instruction", "fix the sum")
    assert ran.code == 0
    assert "-    return a - b\n+    return a + b\n" in ran.out
    assert file.read_bytes() == BEFORE.encode()


def test_the_answer_takes_several_tokens_a_forward(edit: Any, file: Path) -> None:
    ran = edit(file, "-i", "fix the sum", "--json")
    stats = json.loads(ran.out)["stats"]
    assert stats["tokens_per_forward"] > 2
    assert stats["accepted"] <= stats["drafted"]


def test_without_speculation_the_answer_is_the_same(edit: Any, file: Path) -> None:
    fast = json.loads(edit(file, "-i", "fix", "--json").out)
    plain = json.loads(edit(file, "-i", "fix", "--json", "--no-speculation").out)
    assert fast["text"] == plain["text"] == AFTER
    assert plain["stats"]["drafted"] == 0
    assert fast["usage"] == plain["usage"]


def test_write_replaces_the_file_and_keeps_its_mode(edit: Any, file: Path) -> None:
    file.chmod(0o751)
    assert edit(file, "-i", "fix", "--write").code == 0
    assert file.read_bytes() == AFTER.encode()
    assert stat.S_IMODE(file.stat().st_mode) == 0o751
    assert os.listdir(file.parent) == [file.name]


def test_write_goes_through_a_symbolic_link(edit: Any, file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.py"
    link.symlink_to(file)
    assert edit(link, "-i", "fix", "--write").code == 0
    assert link.is_symlink()
    assert file.read_bytes() == AFTER.encode()


@pytest.mark.parametrize(
    "dress",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: text.rstrip("\n"),
        lambda text: "\ufeff" + text.replace("\n", "\r\n").rstrip("\r\n"),
    ],
    ids=["crlf", "bom", "no final newline", "all three"],
)
def test_write_keeps_line_ends_bom_and_final_newline(edit: Any, file: Path, dress: Any) -> None:
    file.write_bytes(dress(BEFORE).encode())
    assert edit(file, "-i", "fix", "--write").code == 0
    assert file.read_bytes() == dress(AFTER).encode()


def test_json_comes_last_and_holds_text_reason_usage_and_stats(edit: Any, file: Path) -> None:
    ran = edit(file, "-i", "fix", "--diff", "--json")
    result = json.loads(ran.out.splitlines()[-1])
    assert result["text"] == AFTER
    assert result["finish_reason"] == "stop"
    usage = result["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert {"forward_passes", "tokens_per_forward", "prefill_seconds", "decode_seconds", "sources"} <= set(
        result["stats"]
    )


def _expect_refusal(ran: Ran, file: Path, before: bytes, *words: str) -> None:
    assert ran.code != 0
    assert file.read_bytes() == before
    said = ran.err.strip().splitlines()[-1]
    assert said.startswith("lookup-spec: ")
    assert all(word in said for word in words), said
    assert "Traceback" not in ran.err


def test_an_answer_cut_off_by_the_limit_changes_nothing(edit: Any, file: Path) -> None:
    ran = edit(file, "-i", "fix", "--write", "--json", "--max-tokens", 8)
    _expect_refusal(ran, file, BEFORE.encode(), "cut off", "8 tokens", "--max-tokens")
    assert json.loads(ran.out)["finish_reason"] == "length"


def test_a_model_that_breaks_down_changes_nothing(edit: Any, file: Path) -> None:
    ran = edit(file, "-i", "fix", "--write", answer=AFTER, ended=False)
    _expect_refusal(ran, file, BEFORE.encode())


def test_an_answer_that_is_no_file_changes_nothing(edit: Any, file: Path) -> None:
    ran = edit(file, "-i", "fix", "--write", answer="I am sorry, I cannot.")
    _expect_refusal(ran, file, BEFORE.encode(), "left as it was")


def test_an_interrupt_changes_nothing(edit: Any, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(Scribe, "follow", interrupted)
    _expect_refusal(edit(file, "-i", "fix", "--write"), file, BEFORE.encode(), "Interrupted")


def test_a_file_changed_meanwhile_is_not_overwritten(edit: Any, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    follow = Scribe.follow

    def meddled(self: Scribe, session: Any) -> Any:
        file.write_text("somebody else's\n")
        return follow(self, session)

    monkeypatch.setattr(Scribe, "follow", meddled)
    _expect_refusal(edit(file, "-i", "fix", "--write"), file, b"somebody else's\n", "changed")


@pytest.mark.parametrize(
    ("data", "word"),
    [(b"a\0b", "binary"), (b"caf\xe9\n", "UTF-8")],
    ids=["binary", "not utf-8"],
)
def test_a_file_that_cannot_be_edited_is_refused(edit: Any, file: Path, data: bytes, word: str) -> None:
    file.write_bytes(data)
    _expect_refusal(edit(file, "-i", "fix", "--write"), file, data, word)


@pytest.mark.parametrize("data", [b"", b"\n \n"], ids=["empty", "blank"])
def test_an_empty_file_is_filled(edit: Any, file: Path, data: bytes) -> None:
    file.write_bytes(data)
    assert edit(file, "-i", "write a sum", "--write").code == 0
    assert file.read_bytes() == AFTER.encode()


def test_a_missing_file_is_named(edit: Any, tmp_path: Path) -> None:
    ran = edit(tmp_path / "none.py", "-i", "fix")
    assert ran.code == 1
    assert "There is no file" in ran.err


def test_a_folder_is_refused(edit: Any, tmp_path: Path) -> None:
    assert edit(tmp_path, "-i", "fix").code == 1


def test_a_file_too_long_for_the_model_is_refused_before_any_work(edit: Any, file: Path) -> None:
    data = "".join(f"value_{n} = {n}\n" for n in range(400)).encode()
    file.write_bytes(data)
    _expect_refusal(edit(file, "-i", "fix", "--write"), file, data, "tokens")


def test_an_empty_instruction_is_refused(edit: Any, file: Path) -> None:
    _expect_refusal(edit(file, "-i", " "), file, BEFORE.encode(), "instruction")


def test_an_edit_without_effect_prints_no_diff(edit: Any, file: Path) -> None:
    ran = edit(file, "-i", "nothing", answer=BEFORE + "```")
    assert ran.code == 0
    assert ran.out == ""
    assert f"{file} needs no change." in ran.err


@pytest.fixture
def three(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / name for name in ("one.py", "two.py", "three.py")]
    for path in paths:
        path.write_bytes(BEFORE.encode())
    return paths


def test_several_files_are_edited_one_after_another(edit: Any, three: list[Path]) -> None:
    ran = edit(*three, "-i", "fix", "--write", "--json")
    assert ran.code == 0
    assert [path.read_bytes() for path in three] == [AFTER.encode()] * 3
    results = [json.loads(line) for line in ran.out.splitlines()]
    assert [(each["file"], each["text"]) for each in results] == [(str(path), AFTER) for path in three]


def test_a_file_that_cannot_be_edited_does_not_keep_the_others_from_it(edit: Any, three: list[Path]) -> None:
    long = "".join(f"value_{n} = {n}\n" for n in range(400)).encode()
    three[1].write_bytes(long)
    ran = edit(*three, "-i", "fix", "--write")
    assert ran.code == 1
    assert [path.read_bytes() for path in three] == [AFTER.encode(), long, AFTER.encode()]
    assert f"{three[1]}: " in ran.err
    assert ran.err.splitlines()[-1] == "lookup-spec: 1 of 3 files was left as it was."


def test_a_file_that_cannot_be_read_is_refused_before_any_is_edited(edit: Any, three: list[Path]) -> None:
    three[2].write_bytes(b"a\0b")
    _expect_refusal(edit(*three, "-i", "fix", "--write"), three[0], BEFORE.encode(), "three.py", "binary")

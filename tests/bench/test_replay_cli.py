from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from lookup_bench.cli import app
from lookup_bench.layout import cases, fence_for
from lookup_bench.records import Edit, git_edits
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer
from typer.testing import CliRunner

from lookup_spec.propose.counts import loads
from lookup_spec.propose.ending import Ending
from lookup_spec.propose.guess import Guess, Kind
from lookup_spec.propose.hazard import Hazards

BEFORE = "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n"
AFTER = BEFORE.replace("sub", "subtract")


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A byte-level tokenizer of some three hundred tokens."""
    made = Tokenizer(BPE())
    made.pre_tokenizer = ByteLevel(add_prefix_space=False)
    made.decoder = ByteLevelDecoder()
    trainer = BpeTrainer(
        vocab_size=320, initial_alphabet=ByteLevel.alphabet(), special_tokens=["<|im_start|>", "<|im_end|>"],
        show_progress=False,
    )  # fmt: skip
    made.train_from_iterator([BEFORE, AFTER], trainer)
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    made.save(str(path))
    return path


@pytest.fixture
def edits(tmp_path: Path) -> Path:
    path = tmp_path / "edits.jsonl"
    record = {"instruction": "Rename sub to subtract", "before": BEFORE, "after": AFTER}
    path.write_text(json.dumps(record) + "\n\n" + json.dumps({**record, "id": "two", "path": "a.py"}) + "\n")
    return path


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Commits: two files, one file, a binary file, one file again."""
    path = tmp_path / "repo"

    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", str(path), *identity, *arguments], check=True, capture_output=True)

    path.mkdir()
    git("init", "-q")
    for subject, files in (
        ("Start", {"a b.py": b"one\n", "b.bin": b"\0\1", "c.py": b"x\n"}),
        ("Change one", {"a b.py": b"one\ntwo\n"}),
        ("Change a binary", {"b.bin": b"\0\2"}),
        ("Change two", {"a b.py": b"two\n", "c.py": b"y\n"}),
        ("Change ümlaut", {"c.py": "ü\n".encode()}),
    ):
        for name, content in files.items():
            (path / name).write_bytes(content)
        git("add", ".")
        git("commit", "-q", "-m", subject)
    return path


def run(*arguments: object, command: str = "replay") -> tuple[int, str]:
    result = CliRunner().invoke(app, [command, *map(str, arguments)], env={"COLUMNS": "200"})
    return result.exit_code, result.output


def test_figures_are_printed_and_written(edits: Path, tokenizer: Path, tmp_path: Path) -> None:
    """Every proposer has a row at every width, in the table and in the JSON file."""
    out = tmp_path / "out.json"
    code, output = run("--edits", edits, "--model", tokenizer, "--width", "4,16", "--json", out)
    assert code == 0, output
    rows = json.loads(out.read_text())
    assert {(row["proposer"], row["width"]) for row in rows} >= {
        (name, width)
        for name in ("lookup-spec", "prompt lookup, 10 tokens", "longest match", "oracle: best single copy")
        for width in (4, 16)
    }
    for row in rows:
        assert set(row) == {
            "proposer", "group", "width", "tokens_per_step", "drafted_per_step", "us_per_step", "oracle_fraction",
            "records", "tokens",
        }  # fmt: skip
        assert row["records"] == 2
        assert 1.0 <= row["tokens_per_step"] <= row["width"] + 1
        assert row["drafted_per_step"] <= row["width"]
        assert row["proposer"] in output
    ours = {row["width"]: row["tokens_per_step"] for row in rows if row["proposer"] == "lookup-spec"}
    assert ours[16] > 6


def test_a_breakdown_stands_in_one_table(edits: Path, tokenizer: Path, tmp_path: Path) -> None:
    """By language or project, each has a line with all widths, and so have all together; where no language is told,
    files go by their endings."""
    out = tmp_path / "out.json"
    with edits.open("a") as file:
        record = {"instruction": "Rename", "before": BEFORE, "after": AFTER, "repo": "one/two", "language": "Go"}
        file.write(json.dumps(record) + "\n")
    for by, groups in (
        ("language", {".py": 1, "Go": 1, "not told": 1, "": 3}),
        ("repo", {"not told": 2, "one/two": 1, "": 3}),
    ):
        code, output = run("--edits", edits, "--model", tokenizer, "--width", "4,16", "--by", by, "--json", out)
        assert code == 0, output
        rows = json.loads(out.read_text())
        assert list({row["group"]: row["records"] for row in rows}.items()) == list(groups.items())
        assert {row["proposer"] for row in rows} == {"lookup-spec", "oracle: best single copy"}
        assert len([line for line in output.splitlines() if "lookup-spec" in line]) == len(groups)
        for row in rows:
            assert f"{row['tokens_per_step']:.2f}, {row['oracle_fraction']:.3f}" in output


def test_parts_can_be_left_out_by_name(edits: Path, tokenizer: Path, tmp_path: Path) -> None:
    """Each --without adds a line; names that are none are refused with those that are."""
    out = tmp_path / "out.json"
    arguments = ["--edits", edits, "--model", tokenizer, "--width", 16, "--json", out]
    code, output = run(*arguments, "--without", "renamed,near", "--without", "counts")
    assert code == 0, output
    rows = {row["proposer"]: row["tokens_per_step"] for row in json.loads(out.read_text())}
    assert list(rows) == ["lookup-spec", "without renamed,near", "without counts", "oracle: best single copy"]
    assert rows["without renamed,near"] < rows["lookup-spec"]
    code, output = run(*arguments, "--without", "near,everything")
    assert (code, "'everything' cannot be left out; what can is: insert" in output) == (1, True)


def test_git_history_is_a_source(repository: Path, tokenizer: Path) -> None:
    """Only commits that change exactly one text file are taken, newest first, with their subjects."""
    edits = git_edits(repository, 10)
    assert [(edit.instruction, edit.path) for edit in edits] == [
        ("Change ümlaut", "c.py"),
        ("Change one", "a b.py"),
    ]
    assert (edits[1].before, edits[1].after) == ("one\n", "one\ntwo\n")
    assert len(git_edits(repository, 1)) == 1
    code, output = run("--git", repository, "--model", tokenizer, "--width", 8)
    assert code == 0, output
    assert "2 edits" in output


def test_workspace_files_are_looked_in(tokenizer: Path, tmp_path: Path) -> None:
    """A workspace file that holds the new text helps; one that cannot be read is refused by name."""
    edits, known, out = tmp_path / "edits.jsonl", tmp_path / "known.py", tmp_path / "out.json"
    new = "class Zebra:\n    # A quick brown fox jumps over the lazy dog; pack my box with jugs.\n"
    edits.write_text(json.dumps({"instruction": "Add it", "before": BEFORE, "after": BEFORE + new}))
    known.write_text(new)
    figures = []
    for extra in ([], ["--workspace", known]):
        assert run("--edits", edits, "--model", tokenizer, "--width", 16, "--json", out, *extra)[0] == 0
        figures.append({row["proposer"]: row["tokens_per_step"] for row in json.loads(out.read_text())})
    for name in ("lookup-spec", "oracle: best single copy"):
        assert figures[1][name] > 2 * figures[0][name]
    code, output = run("--edits", edits, "--model", tokenizer, "--workspace", tmp_path / "none.py")
    assert (code, "none.py" in output) == (1, True)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "holds no edits"),
        (b"{", "Line 1 of"),
        (b"[1]", "no JSON object"),
        (b'{"instruction": "x", "before": "y"}', "no text in its field 'after'"),
        (b"\xff", "not UTF-8"),
    ],
)
def test_bad_files_are_refused_in_one_sentence(tmp_path: Path, tokenizer: Path, content: bytes, says: str) -> None:
    """What is wrong with a file of edits is said in one line, with a non-zero exit."""
    path = tmp_path / "bad.jsonl"
    path.write_bytes(content)
    code, output = run("--edits", path, "--model", tokenizer)
    assert code == 1
    assert says in output
    assert len(output.strip().splitlines()) == 1


def test_missing_things_are_refused_in_one_sentence(tmp_path: Path, edits: Path, tokenizer: Path) -> None:
    """No source, no such file, no repository, no tokenizer, no width: one line each, and a non-zero exit."""
    bad = tmp_path / "bad.json"
    bad.write_text("{}")
    for arguments, says in (
        (["--model", tokenizer], "nothing to replay"),
        (["--edits", tmp_path / "none", "--model", tokenizer], "No such file"),
        (["--git", tmp_path, "--model", tokenizer], "git cannot read"),
        (["--edits", edits, "--model", bad], "is no tokenizer.json"),
        (["--edits", edits, "--model", tokenizer, "--json", tmp_path], "Cannot write"),
    ):
        code, output = run(*arguments, "--width", "4")
        assert code == 1, output
        assert says in output
        assert "Traceback" not in output
    for width in ("0", "x", "", "4,-1"):
        code, output = run("--edits", edits, "--model", tokenizer, "--width", width)
        assert code == 2
        assert "is no list of widths" in output


def test_calibration_writes_counts_that_proposers_start_from(edits: Path, tokenizer: Path, tmp_path: Path) -> None:
    """Counts made from edits can be loaded, and know that an answer begins as predicted."""
    out = tmp_path / "hazards.json"
    code, output = run("--edits", edits, "--model", tokenizer, "--out", out, command="calibrate")
    assert code == 0, output
    start = Guess(Kind.START, (0,), 0, 0, 0)
    (came, tried), (came_before, tried_before) = (
        Hazards(tables).first(start, Ending.WORD) for tables in (loads(out.read_text())[1], {})
    )
    assert came / tried > came_before / tried_before
    code, output = run("--edits", edits, "--model", tokenizer, "--out", tmp_path, command="calibrate")
    assert code == 1
    assert "Is a directory" in output


def test_long_answers_are_left_out(tokenizer: Path) -> None:
    """Edits whose answer is longer than the limit are not replayed."""
    edits = [Edit("a", "x", BEFORE, AFTER), Edit("b", "x", BEFORE, AFTER * 50)]
    opened = Tokenizer.from_file(str(tokenizer))
    assert [case.edit.id for case in cases(edits, opened, most=200)] == ["a"]


def test_the_base_span_is_the_file(tokenizer: Path) -> None:
    """The base span of the prompt decodes to the file; prediction and answer are the fenced files and the end."""
    opened = Tokenizer.from_file(str(tokenizer))
    before = "a ``` fence\n````\n" + BEFORE
    (case,) = cases([Edit("a", "Do it", before, AFTER)], opened)
    (span,) = case.prompt.spans

    def text(ids: tuple[int, ...]) -> str:
        return opened.decode(list(ids), skip_special_tokens=False)

    assert text(case.prompt.ids[span.start : span.end]).strip("\n") == before.rstrip("\n")
    assert text(case.prediction) == f"`````\n{before}`````<|im_end|>"
    assert text(case.answer) == f"`````\n{AFTER}`````<|im_end|>"
    assert case.predicted().references[-1].ids == case.prediction
    assert fence_for("no", "fence") == "```"

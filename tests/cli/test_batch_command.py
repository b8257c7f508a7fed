"""``lookup-spec batch run`` as a user meets it: the real command, a tiny model."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lookup_spec import cli
from lookup_spec.batch.line_file import LineFile
from lookup_spec.errors import OutputError
from lookup_spec.pipeline.engine import Engine
from tests.server.tiny_service import CONTEXT, tiny_model


class Ran(NamedTuple):
    code: int
    err: str
    answers: dict[str, Any]
    failures: list[Any]


@pytest.fixture
def batch(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    monkeypatch.setattr("lookup_spec.model.load.load_model", lambda *_, **__: tiny_model())

    def run(lines: list[Any] | bytes, *arguments: object, output: str = "out.jsonl", source: str = "in.jsonl") -> Ran:
        if not isinstance(lines, bytes):
            lines = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        (tmp_path / "in.jsonl").write_bytes(lines)
        command = ["lookup-spec", "batch", "run", str(tmp_path / source), str(tmp_path / output)]
        monkeypatch.setattr("sys.argv", [*command, *map(str, arguments)])
        code = 0
        try:
            cli.main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        answers = _read(tmp_path / output)
        assert len({one["custom_id"] for one in answers}) == len(answers)
        by_name = {one["custom_id"]: one["response"]["body"] for one in answers}
        failures = _read((tmp_path / output).with_suffix(".errors.jsonl"))
        return Ran(code, capsys.readouterr().err, by_name, failures)

    return run


def _read(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]] if path.exists() else []


def chat(name: object, content: str = "say add", **body: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": content}]
    body = {"messages": messages, "max_tokens": 8, **body}
    return {"custom_id": name, "method": "POST", "url": "/v1/chat/completions", "body": body}


def text_of(body: dict[str, Any]) -> str:
    return "".join(choice["message"]["content"] for choice in body["choices"])


def test_a_bad_line_fails_alone(batch: Any) -> None:
    """With a byte-order mark, CRLF, a blank line and no newline at the end; no line is lost without a trace."""
    lines = [
        "\ufeff" + json.dumps(chat("r1")),
        '{"custom_id":"r2", broken',
        "[1,2,3]",
        '{"custom_id":"r4","method":"POST","url":"/v1/chat/completions"}',
        "",
        json.dumps(chat("r6", "too long" * CONTEXT * 10)),
        json.dumps(chat("r7")),
    ]
    ran = batch("\r\n".join(lines).encode())
    assert ran.code == 3
    assert set(ran.answers) == {"r1", "r7"}
    assert [
        (one["error"]["line"], one["custom_id"]) for one in sorted(ran.failures, key=lambda f: f["error"]["line"])
    ] == [
        (2, None),
        (3, None),
        (4, "r4"),
        (6, "r6"),
    ]
    assert all(one["error"]["code"] or one["error"]["message"] for one in ran.failures)
    assert "2 of 6 lines are answered" in ran.err
    assert "4 failed" in ran.err


def test_answers_are_those_of_the_service(batch: Any) -> None:
    """Chats and completions; run elsewhere, sampled ones are the same, with and without speculation."""
    lines = [
        chat("greedy", temperature=0),
        chat("sampled", n=2),
        {"custom_id": "text", "url": "/v1/completions", "body": {"prompt": ["def", "for"], "temperature": 0}},
    ]
    ran = batch(lines, "--max-parallel", 2)
    assert ran.code == 0
    engine = Engine(tiny_model())
    prompt = engine.prompts.chat(lines[0]["body"]["messages"]).prompt
    assert text_of(ran.answers["greedy"]) == engine.generate(prompt, max_tokens=8).text
    assert [choice["text"] for choice in ran.answers["text"]["choices"]] == [
        engine.generate(start, max_tokens=16).text for start in ("def", "for")
    ]
    first, second = ran.answers["sampled"]["choices"]
    assert first["message"] != second["message"]
    for option in ("--no-speculation", "--keep-order"):
        again = batch(lines, option, output=f"again{option}.jsonl")
        assert {name: body["choices"] for name, body in again.answers.items()} == {
            name: body["choices"] for name, body in ran.answers.items()
        }


def test_a_finished_job_has_nothing_left_to_do(batch: Any) -> None:
    """A grown one does what is new, and failures are tried again if asked for."""
    lines = [chat("a"), chat("b", max_tokens=-1)]
    first = batch(lines)
    assert (first.code, len(first.failures)) == (3, 1)
    second = batch([*lines, chat("c")])
    assert (set(second.answers), len(second.failures)) == ({"a", "c"}, 1)
    assert second.answers["a"] == first.answers["a"]
    third = batch([lines[0], chat("b"), chat("c")], "--retry-errors")
    assert (third.code, set(third.answers), third.failures) == (0, {"a", "b", "c"}, [])


def test_a_job_of_which_every_line_fails_says_what_most_have_in_common(batch: Any) -> None:
    ran = batch([chat(str(number), model="gpt-4") for number in range(5)])
    assert (ran.code, ran.answers, len(ran.failures)) == (3, {}, 5)
    assert "0 of 5 lines are answered" in ran.err
    assert "model_not_found (5)" in ran.err
    assert batch([chat("x", model="gpt-4")], "--served-model-name", "gpt-4", output="named.jsonl").code == 0


@pytest.mark.parametrize("lines", [b"", b"\n\r\n  \n"])
def test_an_empty_input_is_refused(batch: Any, lines: bytes) -> None:
    ran = batch(lines)
    assert ran.code == 1
    assert "nothing to do" in ran.err


def test_what_cannot_be_sent_in_a_batch_fails_by_name(batch: Any) -> None:
    lines = [chat("stream", stream=True), {**chat("url"), "url": "/v1/embeddings"}, chat("extra", nonsense=1)]
    failures = {one["custom_id"]: one for one in batch(lines).failures}
    assert "stream" in failures["stream"]["error"]["message"]
    assert "/v1/embeddings" in failures["url"]["error"]["message"]
    assert failures["extra"]["error"]["param"] == "nonsense"
    assert failures["extra"]["response"]["status_code"] == 400


def test_another_job_in_the_same_place_has_its_own_exit_code(batch: Any, tmp_path: Path) -> None:
    batch([chat("a")])
    ran = batch([chat("a")], "--seed", 5)
    assert (ran.code, set(ran.answers)) == (5, {"a"})
    assert "seed was 0, now 5" in ran.err
    (tmp_path / "other.jsonl").write_text("{}")
    assert "input was 'in.jsonl', now 'other.jsonl'" in batch([chat("a")], source="other.jsonl").err


def test_a_second_run_at_the_same_time_has_its_own_exit_code(batch: Any, tmp_path: Path) -> None:
    from lookup_spec.batch.results import Place, claimed

    with claimed(Place.beside(tmp_path / "out.jsonl")):
        assert batch([chat("a")]).code == 6


def test_a_full_disk_has_its_own_exit_code_and_loses_nothing(batch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [chat(str(number)) for number in range(6)]
    append, left = LineFile.append, 3

    def full(file: LineFile, line: bytes) -> None:
        nonlocal left
        if not left:
            raise OutputError("Cannot write: No space left on device.")
        left -= 1
        append(file, line)

    with monkeypatch.context() as patch:
        patch.setattr(LineFile, "append", full)
        ran = batch(lines)
    assert (ran.code, len(ran.answers)) == (4, 3)
    assert batch(lines).code == 0
    assert batch(lines, output="none/out.jsonl").code == 4


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_after_the_step_and_the_next_run_goes_on(
    batch: Any, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    lines = [chat(str(place), temperature=0) for place in range(6)]
    step, steps = Engine.step, 0

    def counted(engine: Engine) -> bool:
        nonlocal steps
        steps += 1
        if steps == 15:
            os.kill(os.getpid(), number)
        return step(engine)

    with monkeypatch.context() as patch:
        patch.setattr(Engine, "step", counted)
        ran = batch(lines, "--max-parallel", 1)
    assert ran.code == 128 + number
    assert 0 < len(ran.answers) < 6
    assert "goes on from here" in ran.err
    assert set(batch(lines).answers) == {str(place) for place in range(6)}
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_order_is_kept_if_asked_for(batch: Any, tmp_path: Path) -> None:
    batch([chat(str(place), max_tokens=30 - 9 * (place % 3)) for place in range(9)], "--keep-order")
    assert [one["custom_id"] for one in _read(tmp_path / "out.jsonl")] == list("012345678")


def test_progress_can_be_read_by_programs_or_left_out(batch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lookup_spec.cli.batch_report._LOG_SECONDS", {"lines": 0.0, "json": 0.0})
    events = [json.loads(line) for line in batch([chat("a"), chat("b")], "--progress", "json").err.splitlines()]
    assert [event["event"] for event in events] == ["progress"] * (len(events) - 1) + ["end"]
    assert (events[-1]["answered"], events[-1]["failed"], events[-1]["total"]) == (2, 0, 2)
    assert events[-1]["tokens"] > 0
    assert [event["answered"] for event in events] == sorted(event["answered"] for event in events)
    assert "left" in batch([chat("c")], "--progress", "lines", output="lines.jsonl").err
    assert batch([chat("d")], "--quiet", output="quiet.jsonl").err == ""


@pytest.mark.parametrize(
    ("arguments", "word"), [(["--max-parallel", "0"], "--max-parallel"), (["--errors", "in.jsonl"], "different files")]
)
def test_options_that_make_no_sense_are_refused(
    batch: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str], word: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = batch([chat("a")], *arguments)
    assert ran.code == 1
    assert word in ran.err


def test_a_missing_package_is_one_clear_sentence(batch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] in ("lookup_server", "starlette")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "starlette", None)
    ran = batch([chat("a")])
    assert ran.code == 1
    assert "pip install 'lookup-spec[server]'" in ran.err


def test_texts_are_summarized(batch: Any, tmp_path: Path) -> None:
    """Long ones in parts; each has one line by its path, and the question can be changed."""
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "short.txt").write_text("some words\n")
    (docs / "long.py").write_text("def add(a, b):\n    return a + b\n\n\n" * 40)
    (docs / "empty.txt").write_text("")
    (tmp_path / "ask.jinja").write_text("{{ name }}:\n{{ text }}")
    options = ("--template", tmp_path / "ask.jinja", "--max-tokens", 8, "--part-tokens", 120)
    ran = batch(b"", "--summarize", *options, source="docs")
    assert ran.code == 3
    assert set(ran.answers) == {"short.txt", "long.py"}
    assert [one["custom_id"] for one in ran.failures] == ["empty.txt"]
    assert ran.answers["long.py"]["usage"]["completion_tokens"] > 8
    (tmp_path / "ask.jinja").write_text("Other: {{ text }}")
    assert batch(b"", "--summarize", *options, source="docs").code == 5
    assert batch(b"", "--column", "text").code == 1

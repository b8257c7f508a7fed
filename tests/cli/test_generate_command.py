"""``lookup-spec generate`` as a user meets it: the real command, a scripted model."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fakes.scribe import Scribe

from lookup_spec import cli
from lookup_spec.cli import options
from lookup_spec.model.load import LoadedModel
from tests.server.tiny_service import tiny_model

ANSWER = "    return a + b\n"


class Ran(NamedTuple):
    code: int
    out: str
    err: str
    prompts: list[str]


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    return tiny_model()


@pytest.fixture
def generate(loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: object, stdin: bytes = b"") -> Ran:
        scribe = Scribe(loaded, ANSWER)
        monkeypatch.setattr(options, "engine", lambda *_, **__: scribe)
        monkeypatch.setattr("sys.argv", ["lookup-spec", "generate", *map(str, arguments)])
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as caught:
            cli.main()
        output = capsys.readouterr()
        code = caught.value.code
        prompts = [scribe.tokenizer.decode(ids) for ids in scribe.asked]
        return Ran(code if isinstance(code, int) else int(code is not None), output.out, output.err, prompts)

    return run


def test_the_answer_goes_to_stdout_and_the_speed_to_stderr(generate: Any) -> None:
    ran = generate("def add(a, b):\n")
    assert (ran.code, ran.out, ran.prompts) == (0, ANSWER + "\n", ["def add(a, b):\n"])
    assert "tokens per forward pass" in ran.err


def test_a_file_and_stdin_are_prompts_too(generate: Any, tmp_path: Path) -> None:
    file = tmp_path / "prompt.txt"
    file.write_bytes(b"from a file\n")
    assert generate("--file", file).prompts == ["from a file\n"]
    assert generate(stdin=b"from stdin\n").prompts == ["from stdin\n"]


def test_chat_goes_through_the_template(generate: Any) -> None:
    [prompt] = generate("hello", "--chat", "--system", "be brief").prompts
    assert prompt == (
        "<|im_start|>system\nbe brief<|im_end|>\n<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n"
    )


def test_json_is_one_object_and_stop_strings_cut(generate: Any) -> None:
    result = json.loads(generate("x", "--json", "--stop", " + b").out)
    assert (result["text"], result["finish_reason"]) == ("    return a", "stop")
    assert result["usage"]["completion_tokens"] == result["stats"]["completion_tokens"] > 0


@pytest.mark.parametrize(
    ("arguments", "stdin", "word"),
    [
        (["x", "--file", "y"], b"", "choose one"),
        (["--file", "/no/such/file"], b"", "Cannot read"),
        ([], b"", "empty"),
        ([], b"caf\xe9", "UTF-8"),
        (["x", "--system", "be brief"], b"", "--chat"),
        (["x", "--top-p", "2"], b"", "top_p"),
    ],
)
def test_a_prompt_that_cannot_be_used_is_refused_in_one_line(
    generate: Any, arguments: list[str], stdin: bytes, word: str
) -> None:
    ran = generate(*arguments, stdin=stdin)
    assert ran.code == 1
    assert ran.err.startswith("lookup-spec: ")
    assert word in ran.err
    assert ran.err.count("\n") == 1


def test_what_guesses_came_true_is_kept(
    loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the directory that is named or else in the cache, unless it is off; other places stay untouched."""
    monkeypatch.setattr("lookup_spec.model.load.load_model", lambda *_, **__: loaded)
    monkeypatch.setenv("LOOKUP_SPEC_CACHE", str(tmp_path / "cache"))

    def run(*arguments: str) -> list[str]:
        monkeypatch.setattr("sys.argv", ["lookup-spec", "generate", "a b a b a b", "--max-tokens", "8", *arguments])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        assert not caught.value.code, capsys.readouterr().err
        return sorted({path.relative_to(tmp_path).parts[0] for path in tmp_path.rglob("*.json")})

    assert run() == []  # the tests' environment says off
    assert run("--calibration", str(tmp_path / "named")) == ["named"]
    monkeypatch.delenv("LOOKUP_SPEC_CALIBRATION")
    assert run("--calibration", "off") == ["named"]
    assert run() == ["cache", "named"]

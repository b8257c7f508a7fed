"""The command that starts the service, and its signals."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from lookup_server.main import bind

from lookup_spec.cli.serve import serve
from lookup_spec.errors import LookupSpecError
from lookup_spec.model.embedded import EMBEDDED, is_installed
from tests.server.tiny_service import tiny_model

ROOT = Path(__file__).parents[2]
SMALL = EMBEDDED["qwen2.5-coder-0.5b-instruct"]


@contextmanager
def command(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The running command, and where it says it listens."""
    paths = os.pathsep.join(str(ROOT / part) for part in ("", "server", "bench"))
    process = subprocess.Popen(
        [sys.executable, "-c", "from lookup_spec.cli import main; main()", "serve", *arguments],
        env={**os.environ, "PYTHONPATH": paths},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        said = ""
        while (found := re.search(r"playground: (http\S+)", said)) is None:
            line = process.stderr.readline()
            assert line, said
            said += line
        # A pipe that nobody empties stops the service once its logs fill it.
        rest = threading.Thread(target=process.stderr.read)
        rest.start()
        try:
            yield process, found[1]
        finally:
            process.kill()
            rest.join()
    finally:
        process.kill()
        process.communicate()


def test_a_taken_port_is_one_clear_sentence_before_a_model_is_loaded() -> None:
    with bind("127.0.0.1", 0) as sock:
        sock.listen()
        port = sock.getsockname()[1]
        with pytest.raises(LookupSpecError, match=rf"Cannot listen on 127.0.0.1 port {port} .*--port"):
            serve(model="no-such-model", port=port)


def test_a_missing_package_is_one_clear_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "lookup_server"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    with pytest.raises(LookupSpecError, match=r"pip install 'lookup-spec\[server\]'"):
        serve()


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_stop_signal_ends_the_command_with_exit_code_0(tmp_path: Path, number: signal.Signals) -> None:
    """While a client is connected, and even if the signal comes twice."""
    loaded = tiny_model()
    loaded.model.save_pretrained(tmp_path)
    loaded.tokenizer.save_pretrained(tmp_path)
    arguments = ("--model", str(tmp_path), "--port", "0", "--dtype", "float32")
    with command(*arguments) as (process, url), httpx.Client(base_url=url, timeout=120, trust_env=False) as client:
        assert client.get("health").json() == {"status": "ok"}
        page = client.get("")
        assert page.headers["content-type"].startswith("text/html")
        assert "lookup-spec playground" in page.text
        assert re.findall(r"https?://", page.text) == []
        process.send_signal(number)
        process.send_signal(number)
        assert process.wait(120) == 0


@pytest.mark.slow
@pytest.mark.skipif(not is_installed(SMALL), reason=f"the packages of {SMALL.name} are not installed")
def test_a_real_model_copies_in_few_forward_passes_and_says_the_same() -> None:
    """Through HTTP, with speculation on and off."""
    code = "def area(width, height):\n    return width * height\n\n\ndef half(number):\n    return number / 2\n"
    body = {
        "messages": [{"role": "user", "content": f"Repeat this file, nothing else:\n\n{code}"}],
        "temperature": 0,
        "max_tokens": 80,
        "stream": True,
        "stream_options": {"include_speculation": True},
    }
    with command("--model", SMALL.name, "--port", "0", "--dtype", "float32") as (_, url):
        replies = [
            httpx.post(f"{url}v1/chat/completions", json={**body, "speculation": on}, timeout=300, trust_env=False)
            for on in (True, False)
        ]
    (text, passes), (plain, plain_passes) = (_text_and_passes(reply.text) for reply in replies)
    assert "def half" in text
    assert text == plain
    assert passes * 3 < plain_passes


def _text_and_passes(stream: str) -> tuple[str, int]:
    *blocks, done, end = stream.split("\n\n")
    assert (done, end) == ("data: [DONE]", "")
    choices = [json.loads(block.removeprefix("data: "))["choices"][0] for block in blocks]
    text = "".join(choice["delta"].get("content", "") for choice in choices)
    return text, choices[-1]["speculation"]["stats"]["forward_passes"]

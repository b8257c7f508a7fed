"""Pressing a service with edit streams: what is counted, and that a lost or a garbled one would be noticed."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from lookup_bench import cli
from lookup_bench.streams import press
from lookup_bench.tasks import Task
from lookup_server.settings import Settings
from typer.testing import CliRunner

from lookup_spec.errors import LookupSpecError
from lookup_spec.pipeline.engine import Engine
from tests.server.tiny_service import Running, running, tiny_model

TASKS = [Task(f"edit {n}", f"def add(a, b):\n    return a + b + {n}\n", "Rename add.", max_tokens=8) for n in range(3)]


@pytest.fixture(scope="module")
def service() -> Iterator[Running]:
    with running(Engine(tiny_model()), Settings()) as one:
        yield one


def test_no_stream_of_a_service_is_lost_or_garbled(service: Running) -> None:
    report = press(service.url, TASKS, clients=6, seconds=0.5, most=12, pid=os.getpid())
    assert report.streams >= 6
    assert (report.lost, report.garbled, report.reasons) == (0, 0, ())
    assert report.tokens > 0
    assert report.first_p50 <= report.first_p95
    assert len(report.resident_bytes) in (0, 5)


class Broken(BaseHTTPRequestHandler):
    """Answers well three times; then in turn without an end, with another result, and with an error."""

    asked = 0

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        turn = Broken.asked = Broken.asked + 1
        kind = "good" if turn <= 3 else ("cut", "other", "error")[turn % 3]
        done: Any = {
            "type": "done",
            "seq": 1,
            "result_sha256": kind[:5] if kind == "other" else "",
            "usage": {"completion_tokens": 1},
        }
        if kind == "error":
            done = {"type": "error", "seq": 1, "error": {"message": "broken down"}}
        self.send_response(200)
        self.end_headers()
        for event in [{"type": "start", "seq": 0}, *([] if kind == "cut" else [done])]:
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())

    def log_message(self, *_: Any) -> None:
        """Nothing."""


def test_lost_and_garbled_streams_are_counted() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Broken) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        report = press(url, TASKS, clients=1, seconds=0.2)
        server.shutdown()
        thread.join()
    assert report.garbled == report.streams > 0
    assert report.lost > report.streams
    assert any("broken down" in reason for reason in report.reasons)
    assert any("without its last event" in reason for reason in report.reasons)


def test_the_command_says_so_and_fails_where_nothing_answers(service: Running) -> None:
    good = CliRunner().invoke(
        cli.app, ["streams", "--url", service.url, "--clients", "2", "--seconds", "0", "--max-tokens", "4"]
    )
    assert good.exit_code == 0, good.output
    with pytest.raises(LookupSpecError, match="is the service there"):
        press("http://127.0.0.1:9", TASKS, clients=1, seconds=0)

"""The end of a service with everything open: nothing hangs, nobody is left without a word, and batches go on later."""

from __future__ import annotations

import json
import signal
import socket
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.server.test_connections import head_and_body, read_events
from tests.server.test_serve import command
from tests.server.tiny_service import tiny_model, until

LONG = {"prompt": "def add(a, b):\n", "max_tokens": 1900, "ignore_eos": True, "speculation": False, "stream": True}
LINES = 200


def line(number: int) -> str:
    body = {"prompt": f"for item {number}", "max_tokens": 6, "temperature": 0}
    return json.dumps({"custom_id": f"r{number}", "method": "POST", "url": "/v1/completions", "body": body})


def drained(sock: socket.socket) -> bytes:
    data = b""
    while block := sock.recv(65536):
        data += block
    return data


@pytest.mark.slow
def test_a_stop_signal_ends_everything_that_is_open(tmp_path: Path) -> None:
    """A stream that runs, one that waits, an idle connection and a batch; the signal comes twice."""
    loaded = tiny_model()
    loaded.model.save_pretrained(tmp_path / "tiny")
    loaded.tokenizer.save_pretrained(tmp_path / "tiny")
    arguments = ("--model", str(tmp_path / "tiny"), "--port", "0", "--dtype", "float32", "--calibration", "off")
    arguments += ("--batch-dir", str(tmp_path / "batches"), "--max-sessions", "1", "--grace-seconds", "0.1")
    with command(*arguments) as (process, url), client_of(url) as client, ExitStack() as stack:
        lines = "\n".join(map(line, range(LINES)))
        file = client.post("/files", files={"file": ("in.jsonl", lines)}, data={"purpose": "batch"}).json()
        asked = {"input_file_id": file["id"], "endpoint": "/v1/completions", "completion_window": "24h"}
        batch = client.post("/batches", json=asked).json()["id"]
        until(lambda: client.get(f"/batches/{batch}").json()["request_counts"]["completed"] > 0, 30)
        place = (client.base_url.host, client.base_url.port)
        streams = [stack.enter_context(socket.create_connection(place, timeout=120)) for _ in range(3)]
        streams[0].sendall(head_and_body(LONG))
        read_events(streams[0], 1)
        before = waiting_answers(client)
        streams[1].sendall(head_and_body(LONG))
        until(lambda: waiting_answers(client) > before, 30)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        running, waiting, idle = (drained(sock) for sock in streams)
        assert b"shutting down" in running
        assert b"shutting down" in waiting
        assert idle == b""
        with pytest.raises(httpx.ConnectError):
            client.get("/models")
    with command(*arguments) as (_, url), client_of(url) as client:
        until(lambda: client.get(f"/batches/{batch}").json()["status"] == "completed", 60)
        told = client.get(f"/batches/{batch}").json()
        assert told["request_counts"] == {"total": LINES, "completed": LINES, "failed": 0}
        answers = client.get(f"/files/{told['output_file_id']}/content").text.splitlines()
        assert {json.loads(one)["custom_id"] for one in answers} == {f"r{number}" for number in range(LINES)}
        assert len(answers) == LINES


def waiting_answers(client: httpx.Client) -> float:
    told = client.get(str(client.base_url.join("/metrics"))).text.splitlines()
    [value] = [line.rpartition(" ")[2] for line in told if line.startswith("lookup_spec:num_requests_waiting")]
    return float(value)


def client_of(url: str) -> httpx.Client:
    return httpx.Client(base_url=f"{url}v1", timeout=120, trust_env=False)

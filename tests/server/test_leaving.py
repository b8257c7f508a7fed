"""Clients that go away at odd moments, take nothing, or never say what they want: nothing of them stays behind."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from lookup_server.settings import Settings

from lookup_spec.model.load import LoadedModel
from lookup_spec.pipeline.engine import Engine
from tests.server.test_connections import LONG, assert_idle, head_and_body, send
from tests.server.tiny_service import Running, SlowEngine, running, until

USUAL = {"prompt": "for item", "max_tokens": 6, "temperature": 0}
CODE = "".join(f"def add_{n}(a, b):\n    return a + b + {n}\n" for n in range(30))
EDIT = {"document": {"uri": "a.py", "text": CODE}, "instruction": "add types", "stream": True}


def connect(service: Running) -> socket.socket:
    host, port = service.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=120)


def usual(service: Running) -> str:
    reply = httpx.post(f"{service.url}/v1/completions", json=USUAL, timeout=120, trust_env=False)
    return str(reply.raise_for_status().json()["choices"][0]["text"])


def connections(service: Running) -> int:
    return len(service.server.server_state.connections)


def open_files() -> int:
    return len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0


@pytest.fixture(scope="module")
def patient(loaded: LoadedModel) -> Iterator[Running]:
    with running(SlowEngine(loaded, max_sessions=4), Settings(max_sessions=4, max_waiting=64)) as one:
        yield one


@pytest.mark.parametrize("stream", [True, False])
def test_work_stops_when_the_client_goes_before_the_first_token(loaded: LoadedModel, stream: bool) -> None:
    """In the middle of a long prompt; and what was cancelled is told as that, not as an error."""
    with running(SlowEngine(loaded, prefill_chunk=64), Settings()) as service:
        body = {"prompt": [5] * 1900, "max_tokens": 100, "stream": stream}
        with send(service, body):
            until(lambda: service.runner.steps > 1)
        assert_idle(service)
        assert service.runner.steps < 1900 // 64
        assert b'finished_reason="cancelled by client"} 1.0' in service.service.metrics.text()
        assert b"generation_tokens_total 0.0" in service.service.metrics.text()


def test_fifty_clients_that_go_at_once_leave_nothing(patient: Running, caplog: pytest.LogCaptureFixture) -> None:
    """Running or waiting, in streams, whole replies and edits: none is an error, and the next one is served."""
    before = usual(patient)
    bodies = [(LONG, "/v1/completions"), ({**LONG, "stream": True}, "/v1/completions"), (EDIT, "/v1/edits")]
    with caplog.at_level(logging.WARNING), contextlib.ExitStack() as stack:
        for number in range(50):
            body, path = bodies[number % 3]
            if path == "/v1/edits":  # each of its own document, or a newer one would end the older
                body = {**body, "document": {**EDIT["document"], "uri": f"{number}.py"}}
            stack.enter_context(send(patient, body, path))
        until(lambda: patient.runner.active == 50)
    assert_idle(patient)
    until(lambda: connections(patient) == 0)
    assert usual(patient) == before
    assert not caplog.records


def test_two_hundred_connections_that_are_dropped_leave_nothing(patient: Running) -> None:
    """Silent ones, parts of a head, parts of a body, whole requests; ended politely or reset."""
    before = usual(patient)
    until(lambda: connections(patient) == 0)
    files, threads = open_files(), threading.active_count()
    body = b'{"prompt": "for item", "max_tokens": 99}'
    whole = b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body) + body
    for number in range(200):
        with connect(patient) as sock:
            sock.sendall(whole[: (0, 20, 70, len(whole))[number % 4]])
            if number % 3 == 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
    until(lambda: connections(patient) == 0)
    assert_idle(patient)
    assert usual(patient) == before
    until(lambda: connections(patient) == 0)
    assert open_files() <= files
    assert threading.active_count() <= threads + 2  # the pools' threads, which stay


@pytest.mark.parametrize(
    ("before", "head"),
    [(b"", b""), (b"", b"POST /v1/comp"), (b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n", b"POST /v1/comp")],
)
def test_a_connection_that_never_says_what_it_wants_is_closed(loaded: LoadedModel, before: bytes, head: bytes) -> None:
    """From the beginning, or after a request that was answered."""
    with running(SlowEngine(loaded), Settings(body_seconds=0.2)) as service, connect(service) as sock:
        if before:
            sock.sendall(before)
            said = sock.recv(4096)
            while not said.endswith(b'{"status":"ok"}'):
                said += sock.recv(4096)
        sock.sendall(head)
        assert sock.recv(4096) == b""
        until(lambda: connections(service) == 0)


def test_a_body_that_trickles_in_is_cut_off_like_one_that_stops(loaded: LoadedModel) -> None:
    with running(SlowEngine(loaded), Settings(body_seconds=0.2)) as service, connect(service) as sock:
        sock.sendall(b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 10000\r\n\r\n")
        sock.settimeout(0.02)
        said = b""
        while not said:
            with contextlib.suppress(TimeoutError):
                sock.sendall(b" ")
                said = sock.recv(4096)
        assert said.startswith(b"HTTP/1.1 408")
        assert b'"x-should-retry' not in said


def test_clients_whose_machine_is_gone_are_asked_after(patient: Running) -> None:
    """Their connections never end by themselves, so the system probes each that is silent."""
    with connect(patient):
        until(lambda: connections(patient) == 1)
        [connection] = patient.server.server_state.connections
        sock = connection.transport.get_extra_info("socket")
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


def test_a_client_that_takes_nothing_counts_as_gone(loaded: LoadedModel) -> None:
    """Its place becomes free, and meanwhile others are served."""
    with running(Engine(loaded), Settings(send_seconds=0.2)) as service:
        before = usual(service)
        until(lambda: connections(service) == 0)
        with connect(service) as sock:
            until(lambda: connections(service) == 1)
            [connection] = service.server.server_state.connections
            # What the system holds for a client that takes nothing may be megabytes; here, next to nothing.
            connection.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
            connection.transport.set_write_buffer_limits(1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            sock.sendall(head_and_body({**LONG, "logprobs": 5, "stream": True}))
            until(lambda: service.runner.active == 1)
            assert usual(service) == before
            until(lambda: service.runner.active == 0)
        assert_idle(service)
        assert service.runner.steps < 1900
        assert usual(service) == before


def test_a_client_that_takes_its_time_loses_nothing(loaded: LoadedModel) -> None:
    """As long as it takes something now and then."""
    with running(SlowEngine(loaded), Settings(send_seconds=0.3)) as service:
        body = {**LONG, "max_tokens": 40, "stream": True}
        with send(service, body) as sock:
            data = b""
            while not data.endswith(b"0\r\n\r\n"):
                data += sock.recv(300)
                time.sleep(0.01)
        assert data.count(b"data: ") > 30
        assert b"data: [DONE]\n\n" in data


def test_an_answer_over_its_time_ends_with_an_error(loaded: LoadedModel) -> None:
    """As a whole, as a stream, as an edit, and while it waits for its turn; afterwards its place is free."""
    with running(SlowEngine(loaded, max_sessions=1), Settings(request_seconds=0.15, max_sessions=1)) as service:
        whole = httpx.post(f"{service.url}/v1/completions", json=LONG, timeout=120, trust_env=False)
        assert (whole.status_code, whole.json()["error"]["code"]) == (504, "request_timeout")
        assert whole.headers["x-should-retry"] == "false"
        stream = httpx.post(
            f"{service.url}/v1/completions", json={**LONG, "stream": True}, timeout=120, trust_env=False
        )
        assert stream.status_code == 200
        assert '"code":"request_timeout"' in stream.text.split("\n\n")[-2]
        edit = httpx.post(f"{service.url}/v1/edits", json=EDIT, timeout=120, trust_env=False)
        last = edit.text.split("\n\n")[-2]
        assert '"type":"error"' in last
        assert '"code":"request_timeout"' in last
        assert '"safe_to_keep":true' in last
        with send(service, LONG), send(service, LONG) as waiting:
            assert b" 504 " in waiting.recv(4096)
        assert_idle(service)
        short = {"prompt": "x", "max_tokens": 1}
        assert httpx.post(f"{service.url}/v1/completions", json=short, timeout=120, trust_env=False).status_code == 200

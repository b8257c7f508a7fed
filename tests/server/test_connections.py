"""Clients that go away, keys, a full queue, and the end of the service."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import httpx
import pytest
from lookup_server.settings import Settings
from starlette.middleware.base import BaseHTTPMiddleware

from lookup_spec.model.load import LoadedModel
from tests.server.tiny_service import Running, SlowEngine, running, until

LONG = {"prompt": "def add(a, b):\n", "max_tokens": 1900, "ignore_eos": True, "speculation": False}
EVENT = b"data: "
_METHODS = ("GET", "POST", "HEAD", "OPTIONS", "DELETE")


def send(service: Running, body: dict[str, Any], path: str = "/v1/completions") -> socket.socket:
    sock = socket.create_connection(_address(service), timeout=120)
    sock.sendall(head_and_body(body, path))
    return sock


def head_and_body(body: dict[str, Any], path: str = "/v1/completions") -> bytes:
    data = json.dumps(body).encode()
    return f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(data)}\r\n\r\n".encode() + data


def read_events(sock: socket.socket, count: int) -> bytes:
    data = b""
    while data.count(EVENT) < count:
        block = sock.recv(4096)
        assert block, data
        data += block
    return data


def assert_idle(service: Running) -> None:
    """No answer is active, and the engine comes to a stand: an answer that went on would outlast this."""
    until(lambda: service.runner.active == 0)

    def stands() -> bool:
        steps = service.runner.steps
        time.sleep(0.1)
        return service.runner.steps == steps

    until(stands)


@pytest.fixture
def watched(loaded: LoadedModel) -> Iterator[Running]:
    """A slow server whose calls pass through a middleware that wraps requests."""

    async def log(request: Any, call_next: Any) -> Any:
        return await call_next(request)

    with running(SlowEngine(loaded), Settings(), lambda app: app.add_middleware(BaseHTTPMiddleware, log)) as one:
        yield one


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
def test_work_stops_when_its_client_goes_away(slow: Running, path: str, stream: bool) -> None:
    body = {**LONG, "stream": stream}
    if "chat" in path:
        body["messages"] = [{"role": "user", "content": body.pop("prompt")}]
    before = slow.runner.steps
    with send(slow, body, path) as sock:
        if stream:
            assert b" 200 " in read_events(sock, 4)
        until(lambda: slow.runner.steps > before + 3)
        assert slow.runner.active == 1
    assert_idle(slow)


@pytest.mark.parametrize("stream", [True, False])
def test_a_middleware_does_not_hide_that_the_client_went_away(watched: Running, stream: bool) -> None:
    with send(watched, {**LONG, "stream": stream}):
        until(lambda: watched.runner.steps > 3)
    assert_idle(watched)


def test_waiting_requests_leave_the_queue_with_their_clients(slow: Running) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(send(slow, LONG))
        until(lambda: slow.runner.active == 4)
    assert_idle(slow)


def test_a_full_queue_answers_429_and_when_to_come_back(slow: Running) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(send(slow, LONG))
        until(lambda: slow.runner.active == 4)
        for stream in (True, False):
            response = httpx.post(
                f"{slow.url}/v1/completions", json={**LONG, "stream": stream}, timeout=120, trust_env=False
            )
            assert response.status_code == 429
            assert int(response.headers["retry-after"]) >= 1
            assert response.json()["error"]["code"] == "overloaded"
        assert httpx.get(f"{slow.url}/health", timeout=120, trust_env=False).status_code == 200
    assert_idle(slow)


def test_more_answers_than_there_are_places_is_a_bad_request(slow: Running) -> None:
    response = httpx.post(f"{slow.url}/v1/completions", json={**LONG, "n": 5}, timeout=120, trust_env=False)
    assert (response.status_code, response.json()["error"]["param"]) == (400, "n")


def test_requests_that_run_together_get_what_each_gets_alone(service: Running) -> None:
    def ask(seed: int) -> str:
        body = {"prompt": "for item", "seed": seed, "max_tokens": 40}
        response = httpx.post(f"{service.url}/v1/completions", json=body, timeout=120, trust_env=False)
        return response.json()["choices"][0]["text"]

    alone = [ask(seed) for seed in range(6)]
    together: dict[int, str] = {}
    threads = [threading.Thread(target=lambda seed=seed: together.update({seed: ask(seed)})) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [together[seed] for seed in range(6)] == alone
    assert service.runner.active == 0


def test_a_silent_stream_sends_comments(loaded: LoadedModel) -> None:
    """They do not begin with ``: ping``, which one editor takes for the end."""
    with running(SlowEngine(loaded), Settings(heartbeat_seconds=0.01)) as service:
        with send(service, {**LONG, "stream": True}) as sock:
            data = read_events(sock, 5)
        assert b": hb\n\n" in data
        assert b": ping" not in data


def test_a_slow_body_is_cut_off(loaded: LoadedModel) -> None:
    with (
        running(SlowEngine(loaded), Settings(body_seconds=0.3)) as service,
        socket.create_connection(_address(service), timeout=120) as sock,
    ):
        sock.sendall(b'POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{"a')
        assert sock.recv(4096).startswith(b"HTTP/1.1 408")


@pytest.fixture(scope="module")
def locked(loaded: LoadedModel) -> Iterator[Running]:
    settings = Settings(api_keys=("K1", "K2"), cors_origins=("https://ide.example",))
    with running(SlowEngine(loaded), settings) as one:
        yield one


@pytest.mark.parametrize("authorization", [None, "Bearer", "Bearer wrong", "Basic K1", "K1", "Bearer K1K2"])
def test_every_route_but_the_public_ones_needs_a_key(locked: Running, authorization: str | None) -> None:
    """However its path is written, and before any of the body is there."""
    headers = {"authorization": authorization} if authorization else {}
    paths = set(_paths(locked.server.config.app))
    assert {"/v1/completions", "/completions", "/infill", "/v1/models/x", "/v1/edits", "/metrics"} <= paths
    variants = {f"{path}/" for path in paths} | {f"/{path}" for path in paths} | {path.upper() for path in paths}
    encoded = {f"/%{ord(path[1]):02x}{path[2:]}" for path in paths if len(path) > 1}
    with httpx.Client(base_url=locked.url, headers=headers, timeout=120, trust_env=False) as client:
        for path in sorted(paths | variants | encoded | {"/nope"}):
            public = re.fullmatch("/*|/health/?|/v1/health/?|/playground/.*", unquote(path)) is not None
            for method in _METHODS if authorization is None else ("POST",):
                request = client.build_request(method, "/", params={"api_key": "K1"}, content=b"{")
                request.url = request.url.copy_with(raw_path=f"{path}?api_key=K1".encode())
                status = client.send(request).status_code
                assert (status in (200, 404, 405)) if public else status == 401, (method, path, status)
        assert client.get("/v1/models").json()["error"]["code"] == "invalid_api_key"
    with socket.create_connection(_address(locked), timeout=120) as sock:
        sock.sendall(b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n")
        assert sock.recv(4096).startswith(b"HTTP/1.1 401")


def _paths(app: Any) -> Iterator[str]:
    """All routes' paths with something in place of their parameters; most are there without their version, too."""
    for path in app.openapi()["paths"]:
        concrete = re.sub(r"\{[^}]*\}", "x", path)
        yield from (concrete, concrete.removeprefix("/v1"))
    yield from ("/", "/openapi.json", "/v1/health", "/playground/x")


def _address(service: Running) -> tuple[str, int]:
    host, port = service.url.removeprefix("http://").split(":")
    return host, int(port)


@pytest.mark.parametrize("key", ["K1", "K2"])
def test_any_of_the_keys_opens(locked: Running, key: str) -> None:
    headers = {"authorization": f"Bearer {key}"}
    assert httpx.get(f"{locked.url}/v1/models", headers=headers, timeout=120, trust_env=False).status_code == 200


def test_a_preflight_needs_no_key_and_errors_carry_cross_origin_headers(locked: Running) -> None:
    ask = {
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type",
    }
    with httpx.Client(base_url=locked.url, timeout=120, trust_env=False) as client:
        for origin, allowed in (("https://ide.example", True), ("https://evil.example", False)):
            preflight = client.options("/v1/chat/completions", headers={"origin": origin, **ask})
            assert (preflight.status_code < 300) == allowed
            refused = client.post("/v1/chat/completions", headers={"origin": origin})
            assert refused.status_code == 401
            for response in (preflight, refused):
                assert (response.headers.get("access-control-allow-origin") == origin) == allowed


@pytest.mark.parametrize("stream", [True, False])
def test_shutdown_ends_unfinished_answers_with_an_error(loaded: LoadedModel, stream: bool) -> None:
    with running(SlowEngine(loaded), Settings(grace_seconds=0.3)) as service:
        url = service.url
        with send(service, {**LONG, "stream": stream}) as sock:
            until(lambda: service.runner.steps > 3)
            service.server.should_exit = True
            data = b""
            while block := sock.recv(65536):
                data += block
    assert b"shutting down" in data
    assert b"[DONE]" not in data
    assert data.startswith(b"HTTP/1.1 200" if stream else b"HTTP/1.1 503")
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/health", timeout=120, trust_env=False)


def test_shutdown_lets_answers_complete_within_the_grace_time(loaded: LoadedModel) -> None:
    body = {**LONG, "max_tokens": 30, "stream": True}
    with running(SlowEngine(loaded), Settings(grace_seconds=8)) as service:
        with (
            send(service, body) as sock,
            socket.create_connection(sock.getpeername()),
        ):  # and an idle connection
            read_events(sock, 2)
            service.server.should_exit = True
            data = b""
            while block := sock.recv(65536):
                data += block
        until(lambda: not service.runner._thread.is_alive(), 4)
    assert b"data: [DONE]\n\n" in data
    assert b'"finish_reason":"length"' in data


def test_an_unforeseen_error_is_a_500_and_harms_nobody_else(
    loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    engine = SlowEngine(loaded)
    good = {"prompt": "for item", "max_tokens": 3, "temperature": 0}
    with (
        running(engine, Settings(cors_origins=("*",))) as service,
        httpx.Client(base_url=service.url, timeout=120, trust_env=False) as client,
    ):
        usual = client.post("/v1/completions", json=good).json()["choices"]
        with monkeypatch.context() as patch:
            patch.setattr(engine._model, "forward", lambda _: 1 / 0)
            response = client.post("/v1/completions", json=good, headers={"origin": "https://a.example"})
            assert response.status_code == 500
            assert "ZeroDivision" not in response.text
            assert "access-control-allow-origin" in response.headers
            stream = client.post("/v1/completions", json={**good, "stream": True})
            assert '"type":"server_error"' in stream.text
            assert "[DONE]" not in stream.text
        assert "ZeroDivisionError" in caplog.text
        assert client.post("/v1/completions", json=good).json()["choices"] == usual

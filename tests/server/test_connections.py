"""Clients that go away, keys, a full queue, and the end of the service."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from lookup_server.settings import Settings
from starlette.middleware.base import BaseHTTPMiddleware

from lookup_spec.model.load import LoadedModel
from tests.server.tiny_service import Running, SlowEngine, running, until

LONG = {"prompt": "def add(a, b):\n", "max_tokens": 1900, "ignore_eos": True, "speculation": False}
EVENT = b"data: "


def send(service: Running, body: dict[str, Any], path: str = "/v1/completions") -> socket.socket:
    host, port = service.url.removeprefix("http://").split(":")
    sock = socket.create_connection((host, int(port)), timeout=10)
    data = json.dumps(body).encode()
    sock.sendall(f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(data)}\r\n\r\n".encode() + data)
    return sock


def read_events(sock: socket.socket, count: int) -> bytes:
    data = b""
    while data.count(EVENT) < count:
        block = sock.recv(4096)
        assert block, data
        data += block
    return data


def assert_idle(service: Running) -> None:
    """No answer is active and the engine stands still."""
    until(lambda: service.runner.active == 0, 1.0)
    time.sleep(0.1)
    steps = service.runner.steps
    time.sleep(0.1)
    assert service.runner.steps == steps


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
            response = httpx.post(f"{slow.url}/v1/completions", json={**LONG, "stream": stream}, trust_env=False)
            assert response.status_code == 429
            assert int(response.headers["retry-after"]) >= 1
            assert response.json()["error"]["code"] == "overloaded"
        assert httpx.get(f"{slow.url}/health", trust_env=False).status_code == 200
    assert_idle(slow)


def test_more_answers_than_there_are_places_is_a_bad_request(slow: Running) -> None:
    response = httpx.post(f"{slow.url}/v1/completions", json={**LONG, "n": 5}, trust_env=False)
    assert (response.status_code, response.json()["error"]["param"]) == (400, "n")


def test_requests_that_run_together_get_what_each_gets_alone(service: Running) -> None:
    def ask(seed: int) -> str:
        body = {"prompt": "for item", "seed": seed, "max_tokens": 40}
        response = httpx.post(f"{service.url}/v1/completions", json=body, timeout=30, trust_env=False)
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
    with running(SlowEngine(loaded), Settings(body_seconds=0.3)) as service:
        host, port = service.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=5) as sock:
            sock.sendall(b'POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{"a')
            assert sock.recv(4096).startswith(b"HTTP/1.1 408")


@pytest.fixture(scope="module")
def locked(loaded: LoadedModel) -> Iterator[Running]:
    settings = Settings(api_keys=("K1", "K2"), cors_origins=("https://ide.example",))
    with running(SlowEngine(loaded), settings) as one:
        yield one


@pytest.mark.parametrize("authorization", [None, "Bearer", "Bearer wrong", "Basic K1", "K1", "Bearer K1K2"])
def test_every_route_but_the_public_ones_needs_a_key(locked: Running, authorization: str | None) -> None:
    headers = {"authorization": authorization} if authorization else {}
    app = locked.server.config.app
    paths = {path.replace("{name:path}", "x") for path in _paths(app)}
    assert {"/v1/completions", "/completions", "/v1/models/x", "/openapi.json"} <= paths
    variants = {f"{path}/" for path in paths} | {"/V1/models", "/v1/%6dodels", "/nope"}
    with httpx.Client(base_url=locked.url, headers=headers, trust_env=False) as client:
        for path in sorted(paths | variants):
            for method in ("GET", "POST", "HEAD", "OPTIONS", "DELETE"):
                response = client.request(method, path, params={"api_key": "K1"})
                if path.rstrip("/") in ("", "/health", "/v1/health"):
                    assert response.status_code in (200, 405), path
                else:
                    assert response.status_code == 401, (method, path)
        assert client.get("/v1/models").json()["error"]["code"] == "invalid_api_key"


def _paths(app: Any) -> Iterator[str]:
    yield from app.openapi()["paths"]
    for prefix in ("", "/v1"):
        for path in ("/completions", "/chat/completions", "/models", "/models/x", "/health"):
            yield prefix + path
    yield from ("/", "/openapi.json")


@pytest.mark.parametrize("key", ["K1", "K2"])
def test_any_of_the_keys_opens(locked: Running, key: str) -> None:
    headers = {"authorization": f"Bearer {key}"}
    assert httpx.get(f"{locked.url}/v1/models", headers=headers, trust_env=False).status_code == 200


def test_a_preflight_needs_no_key_and_errors_carry_cross_origin_headers(locked: Running) -> None:
    ask = {
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type",
    }
    with httpx.Client(base_url=locked.url, trust_env=False) as client:
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
        httpx.get(f"{url}/health", trust_env=False)


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
        httpx.Client(base_url=service.url, trust_env=False) as client,
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

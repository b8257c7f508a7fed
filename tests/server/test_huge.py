"""Huge prompts and hostile bodies beside somebody's stream: it goes on, and what they take of memory is bounded."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from lookup_server.editors.requests import FimRequest, TabbyRequest
from lookup_server.edits.requests import EditBody
from lookup_server.llamacpp.requests import CompletionBody, DetokenizeBody, InfillBody
from lookup_server.openai.requests import ChatRequest, CompletionRequest
from lookup_server.settings import Settings
from pydantic import ValidationError

from lookup_spec.model.load import LoadedModel
from lookup_spec.pipeline.engine import Engine
from tests.server.tiny_service import FIM, Running, running, tiny_model, until

MANY = 20_000
CODE = "".join(f"def add_{k}(a, b):\n    return a + b + {k}\n\n\n" for k in range(60))
HUGE = CODE * 500  # 1.3 MB
OBJECTS: list[Any] = [{}] * MANY
NUMBERS: list[Any] = [5] * MANY
USER = {"role": "user", "content": "x"}
WRONG: list[tuple[Any, dict[str, Any]]] = [
    (CompletionRequest, {"prompt": OBJECTS}),
    (CompletionRequest, {"prompt": [[None]] * MANY}),
    (CompletionRequest, {"prompt": "x", "stop": NUMBERS}),
    (CompletionRequest, {"prompt": "x", "logit_bias": {str(number): "" for number in range(MANY)}}),
    (CompletionRequest, {"prompt": "x", **{f"a{number}": 1 for number in range(MANY)}}),
    (ChatRequest, {"messages": OBJECTS}),
    (ChatRequest, {"messages": [{"role": "user", "content": OBJECTS}]}),
    (ChatRequest, {"messages": [USER], "tools": NUMBERS}),
    (EditBody, {"document": {"text": "x"}, "context": OBJECTS}),
    (EditBody, {"document": {"text": "x"}, "edit_history": NUMBERS}),
    (InfillBody, {"input_prefix": "", "input_suffix": "", "input_extra": OBJECTS}),
    (CompletionBody, {"prompt": OBJECTS}),
    (DetokenizeBody, {"tokens": OBJECTS}),
    (TabbyRequest, {"segments": {"prefix": "", "declarations": OBJECTS}}),
    (FimRequest, {"prompt": "", "bad_words": NUMBERS}),
]


@pytest.mark.parametrize(("form", "body"), WRONG)
def test_a_body_that_is_wrong_in_many_places_is_refused_for_one(form: Any, body: dict[str, Any]) -> None:
    """Each complaint takes a thousand times the memory of what it is about, and time while nobody else runs."""
    with pytest.raises(ValidationError) as refused:
        form.model_validate_json(json.dumps(body))
    assert refused.value.error_count() < 10


@pytest.mark.parametrize(("number", "param"), [(0, "prompt"), (3, "logit_bias"), (4, "a0")])
def test_the_first_thing_wrong_is_told_as_ever(client: httpx.Client, number: int, param: str) -> None:
    reply = client.post("/v1/completions", json=WRONG[number][1])
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param)


def test_a_null_hides_no_field_that_is_not_known(client: httpx.Client) -> None:
    body = {"prompt": "x", "nothing": None, "unknown": 1, "other": 2, "max_tokens": 1}
    assert client.post("/v1/completions", json=body).json()["error"]["param"] == "unknown"
    assert client.post("/v1/completions", json={"prompt": "x", "nothing": None, "max_tokens": 1}).status_code == 200


@pytest.fixture(scope="module")
def roomy() -> Iterator[Running]:
    with running(Engine(tiny_model(FIM), prefill_chunk=64), Settings(max_body_mb=16)) as one:
        yield one


@contextmanager
def stream(service: Running) -> Iterator[list[int]]:
    """Somebody's stream; how many events of it have arrived."""
    body = {"prompt": "def", "max_tokens": 2000, "ignore_eos": True, "speculation": False, "stream": True}
    arrived = [0]
    left = threading.Event()

    def listen() -> None:
        while not left.is_set():  # one after the other, as long as it takes
            with httpx.stream(
                "POST", f"{service.url}/v1/completions", json=body, timeout=120, trust_env=False
            ) as reply:
                for part in reply.iter_raw():
                    arrived[0] += part.count(b"data: ")
                    if left.is_set():
                        return

    thread = threading.Thread(target=listen)
    thread.start()
    try:
        until(lambda: arrived[0] > 3)
        yield arrived
    finally:
        left.set()
        thread.join()


LONG = CODE[: len(CODE) // 2]
REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("/v1/completions", {"prompt": LONG, "max_tokens": 1}),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": f"Rename.\n```\n{LONG}```"}], "max_tokens": 1}),
    ("/v1/completions", {"prompt": [5, 6, 7, 8] * 500, "max_tokens": 1}),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": HUGE}]}),
    ("/v1/completions", {"prompt": HUGE}),
    ("/v1/completions", {"prompt": [5, 6, 7, 8] * 200_000}),
    ("/v1/completions", {"prompt": [[]] * 100_000}),
    ("/v1/completions", {"prompt": [{}] * 100_000}),
    ("/v1/edits", {"document": {"uri": "a.py", "text": HUGE}, "instruction": "x"}),
    ("/infill", {"input_prefix": HUGE, "input_suffix": HUGE[:9000], "n_predict": 1}),
    ("/tokenize", {"content": HUGE}),
    ("/detokenize", {"tokens": [5, 6, 7, 8] * 200_000}),
]


@pytest.mark.parametrize(("path", "body"), REQUESTS)
def test_a_stream_goes_on_beside_a_huge_prompt(roomy: Running, path: str, body: dict[str, Any]) -> None:
    """Events of it arrive between the sending of the prompt and the reply, whatever that is; steps are taken, too."""
    content = json.dumps(body).encode()
    with stream(roomy) as arrived:
        events, steps = arrived[0], roomy.runner.steps
        reply = httpx.post(f"{roomy.url}{path}", content=content, timeout=120, trust_env=False)
        events, steps = arrived[0] - events, roomy.runner.steps - steps
    assert reply.status_code in (200, 400)
    assert steps > 0
    assert events > 0


@pytest.mark.parametrize("length", [b"content-length: 60000000", b"transfer-encoding: chunked"])
def test_a_body_over_the_limit_takes_less_than_twice_the_limit(loaded: LoadedModel, length: bytes) -> None:
    """Whether it says how long it is or not; what has arrived of it is not kept."""
    block = b"x" * 50_000
    piece = b"%x\r\n%s\r\n" % (len(block), block) if b"chunked" in length else block
    with running(Engine(loaded), Settings(max_body_mb=2)) as service:
        host, port = service.url.removeprefix("http://").split(":")
        tracemalloc.start()
        try:
            with socket.create_connection((host, int(port)), timeout=120) as sock:
                sock.sendall(b"POST /v1/completions HTTP/1.1\r\nhost: x\r\n" + length + b"\r\n\r\n")
                with contextlib.suppress(ConnectionError):
                    for _ in range(60_000_000 // len(block)):
                        sock.sendall(piece)
            assert tracemalloc.get_traced_memory()[1] < 4_000_000
        finally:
            tracemalloc.stop()
        until(lambda: not service.server.server_state.connections)


def test_what_waits_for_a_client_that_takes_nothing_is_bounded(loaded: LoadedModel) -> None:
    """No more than its answer has tokens; and nothing of it is left when it is gone."""
    with running(Engine(loaded), Settings(send_seconds=1)) as service:
        host, port = service.url.removeprefix("http://").split(":")
        body = {"prompt": "def", "max_tokens": 1500, "ignore_eos": True, "logprobs": 5, "n": 4, "stream": True}
        data = json.dumps(body).encode()
        with socket.create_connection((host, int(port)), timeout=120) as sock:
            until(lambda: len(service.server.server_state.connections) == 1)
            [connection] = service.server.server_state.connections
            connection.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            sock.sendall(b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(data) + data)
            until(lambda: service.runner.active == 4)
            most = 0

            def gone() -> bool:
                nonlocal most
                most = max(most, connection.transport.get_write_buffer_size())
                return service.runner.active == 0

            until(gone, 30)
        assert 0 < most < 1_000_000
        until(lambda: not service.server.server_state.connections)

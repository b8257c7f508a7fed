"""Bad bodies: each is refused by name, at once, and harms nobody else."""

from __future__ import annotations

import json
import socket
import threading
import time
from typing import Any

import httpx
import pytest

CHAT = "/v1/chat/completions"
TEXT = "/v1/completions"
USER = [{"role": "user", "content": "x"}]
CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def schema(told: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "t", "schema": told, **more}}


# path, fields, and the field that the error has to name
BAD_FIELDS: list[tuple[str, dict[str, Any], str | None]] = [
    (TEXT, {"temperature": float("nan")}, "temperature"),
    (TEXT, {"temperature": float("inf")}, "temperature"),
    (TEXT, {"temperature": -1}, "temperature"),
    (TEXT, {"temperature": 1e9}, "temperature"),
    (TEXT, {"temperature": "hot"}, "temperature"),
    (TEXT, {"temperature": True}, "temperature"),
    (TEXT, {"top_p": -1}, "top_p"),
    (TEXT, {"top_p": 2}, "top_p"),
    (TEXT, {"top_p": 0}, "top_p"),
    (TEXT, {"top_k": -2}, "top_k"),
    (TEXT, {"min_p": 2}, "min_p"),
    (TEXT, {"repetition_penalty": 0}, "repetition_penalty"),
    (TEXT, {"presence_penalty": float("nan")}, "presence_penalty"),
    (TEXT, {"frequency_penalty": 1e300}, "frequency_penalty"),
    (TEXT, {"max_tokens": -5}, "max_tokens"),
    (TEXT, {"max_tokens": "ten"}, "max_tokens"),
    (TEXT, {"max_tokens": 1e18}, "max_tokens"),
    (TEXT, {"max_tokens": 2.5}, "max_tokens"),
    (TEXT, {"min_tokens": 9, "max_tokens": 8}, "min_tokens"),
    (TEXT, {"n": 0}, "n"),
    (TEXT, {"n": 1000}, "n"),
    (TEXT, {"n": 100, "prompt": ["a", "b"]}, "n"),
    (TEXT, {"best_of": 3}, "best_of"),
    (TEXT, {"suffix": "return"}, "suffix"),
    (TEXT, {"echo": True, "logprobs": 1}, "logprobs"),
    (TEXT, {"logprobs": 6}, "logprobs"),
    (TEXT, {"logprobs": True}, "logprobs"),
    (TEXT, {"logit_bias": {"cat": -50}}, "logit_bias"),
    (TEXT, {"logit_bias": {"99999999": 5}}, "logit_bias"),
    (TEXT, {"logit_bias": {"1": 1e308}}, "logit_bias.1"),
    (TEXT, {"logit_bias": [1]}, "logit_bias"),
    (TEXT, {"stop": [str(k) for k in range(10_000)]}, "stop"),
    (TEXT, {"stop": 5}, "stop"),
    (TEXT, {"stop": ["a", 5]}, "stop"),
    (TEXT, {"stop_token_ids": [99999999]}, "stop_token_ids"),
    (TEXT, {"bad_words": [""]}, "bad_words"),
    (TEXT, {"seed": 1e30}, "seed"),
    (TEXT, {"seed": 2**64}, "seed"),
    (TEXT, {"prompt": ""}, "prompt"),
    (TEXT, {"prompt": []}, "prompt"),
    (TEXT, {"prompt": [[]]}, "prompt"),
    (TEXT, {"prompt": None}, "prompt"),
    (TEXT, {"prompt": [-1, 999999999]}, "prompt"),
    (TEXT, {"prompt": [999999999]}, "prompt"),
    (TEXT, {"prompt": [10**30]}, "prompt"),
    (TEXT, {"prompt": [1, "a"]}, "prompt"),
    (TEXT, {"prompt": {"a": 1}}, "prompt"),
    (TEXT, {"max_token": 8}, "max_token"),
    (TEXT, {"stream": "yes"}, "stream"),
    (TEXT, {"stream_options": {"include_usage": True}}, "stream_options"),
    (TEXT, {"stream": True, "stream_options": {"usage": True}}, "stream_options.usage"),
    (CHAT, {"messages": []}, "messages"),
    (CHAT, {"messages": None}, "messages"),
    (CHAT, {"messages": "hi"}, "messages"),
    (CHAT, {"messages": ["hi"]}, "messages[0]"),
    (CHAT, {"messages": [{"role": "wizard", "content": "x"}]}, "messages[0].role"),
    (CHAT, {"messages": [{"role": "tool", "tool_call_id": "1"}]}, "messages[0].content"),
    (CHAT, {"messages": [{"role": "user", "content": "x", "tool_call_id": "1"}]}, "messages[0].tool_call_id"),
    (CHAT, {"messages": [{"role": "user", "content": "x", "tool_calls": [CALL]}]}, "messages[0].tool_calls"),
    (
        CHAT,
        {"messages": [{"role": "assistant", "tool_calls": [{**CALL, "function": {"name": "f", "arguments": "{"}}]}]},
        "messages[0].tool_calls[0].function.arguments",
    ),
    (CHAT, {"messages": [{"role": "user", "content": None}]}, "messages[0].content"),
    (CHAT, {"messages": [*USER, {"role": "user", "content": 5}]}, "messages[1].content"),
    (
        CHAT,
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
        "messages[0].content[0].type",
    ),
    (CHAT, {"max_token": 8}, "max_token"),
    (CHAT, {"max_completion_tokens": -1}, "max_completion_tokens"),
    (CHAT, {"top_logprobs": 2}, "top_logprobs"),
    (CHAT, {"logprobs": 2}, "logprobs"),
    (CHAT, {"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
    (CHAT, {"response_format": {"type": "yaml"}}, "response_format.type"),
    (CHAT, {"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
    (CHAT, {"response_format": {"type": "text", "json_schema": {"name": "t"}}}, "response_format.json_schema"),
    (
        CHAT,
        {"response_format": {"type": "json_schema", "json_schema": {"schema": {}}}},
        "response_format.json_schema.name",
    ),
    (CHAT, {"response_format": schema({"type": "thing"})}, "response_format.json_schema.schema"),
    (CHAT, {"response_format": schema({"not": {}}, strict=True)}, "response_format.json_schema.schema"),
    (
        CHAT,
        {"response_format": {"type": "json_object"}, "messages": [*USER, {"role": "assistant", "content": "{"}]},
        "messages",
    ),
    (CHAT, {"response_format": {"type": "json_object"}, "ignore_eos": True}, "ignore_eos"),
    (CHAT, {"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools"),
    (CHAT, {"tools": [{"type": "custom", "custom": {"name": "f"}}]}, "tools[0].type"),
    (CHAT, {"tools": [{"type": "function", "function": {"name": "f g"}}]}, "tools[0].function.name"),
    (CHAT, {"tools": [{"type": "function", "function": {"name": "f"}}] * 2}, "tools[1].function.name"),
    (CHAT, {"tool_choice": "required"}, "tool_choice"),
    (CHAT, {"tool_choice": "some"}, "tool_choice"),
    (CHAT, {"tool_choice": {"type": "function", "function": {"name": "f"}}}, "tool_choice"),
    (CHAT, {"functions": [{"name": "f"}]}, "functions"),
    (CHAT, {"function_call": "auto"}, "function_call"),
    (CHAT, {"modalities": ["text", "audio"]}, "modalities[1]"),
    (CHAT, {"audio": {"voice": "x", "format": "wav"}}, "audio"),
    (CHAT, {"prediction": {"type": "content", "content": "abc"}, "n": 2}, "n"),
    (CHAT, {"prediction": {"type": "content"}}, "prediction.content"),
    (CHAT, {"prediction": "abc"}, "prediction"),
]
BAD_BODIES = [
    b'{"messages": [,]}',
    b"[1,2,3]",
    b"null",
    b"",
    b"\xff\xfe\x00",
    b'{"a":' * 10_000,
    b'{"prompt":' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    b'{"prompt": "a"',
    b'{"prompt": "\\ud800"}',
    b'prompt=a&max_tokens=3',
]  # fmt: skip


@pytest.fixture(scope="module")
def usual(client: httpx.Client) -> str:
    """The answer to a normal request before all this."""
    return normal(client)


def normal(client: httpx.Client) -> str:
    body = {"prompt": "def add(a, b):\n", "max_tokens": 8, "temperature": 0}
    return client.post(TEXT, json=body).raise_for_status().json()["choices"][0]["text"]


def assert_error(response: httpx.Response, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert {"message", "type", "param", "code"} <= set(error)
    assert error["message"].endswith((".", "?"))
    return error


@pytest.mark.parametrize(
    ("path", "fields", "param"), BAD_FIELDS, ids=[json.dumps(fields)[:60] for _, fields, _ in BAD_FIELDS]
)
def test_a_bad_field_is_refused_by_name(
    client: httpx.Client, usual: str, path: str, fields: dict[str, Any], param: str | None
) -> None:
    base = {"prompt": "x", "max_tokens": 4} if path == TEXT else {"messages": USER, "max_tokens": 4}
    for stream in ({}, {"stream": True}):
        if stream and param == "stream_options":
            continue
        error = assert_error(client.post(path, content=json.dumps({**base, **stream, **fields})), 400)
        assert error["type"] == "invalid_request_error"
        assert error["param"] == param
        assert param.split(".")[0].split("[")[0] in error["message"]
    assert normal(client) == usual
    assert client.get("/health").status_code == 200


@pytest.mark.parametrize("body", BAD_BODIES, ids=[repr(body[:20]) for body in BAD_BODIES])
@pytest.mark.parametrize("path", [TEXT, CHAT])
def test_a_body_that_is_no_json_object_is_refused(client: httpx.Client, usual: str, path: str, body: bytes) -> None:
    assert_error(client.post(path, content=body), 400)
    assert normal(client) == usual


def test_a_misspelt_field_gets_a_hint(client: httpx.Client) -> None:
    error = assert_error(client.post(TEXT, json={"prompt": "x", "max_token": 8}), 400)
    assert "did you mean max_tokens?" in error["message"]


@pytest.mark.parametrize("path", [TEXT, CHAT])
def test_an_unknown_model_is_not_found(client: httpx.Client, path: str) -> None:
    error = assert_error(client.post(path, json={"model": "gpt-4", "prompt": "x", "messages": USER}), 400)
    assert error["param"] in ("prompt", "messages")  # the other API's field
    body = {"prompt": "x"} if path == TEXT else {"messages": USER}
    error = assert_error(client.post(path, json={**body, "model": "gpt-4"}), 404)
    assert (error["param"], error["code"]) == ("model", "model_not_found")


@pytest.mark.parametrize("path", ["/nope", "/v1/embeddings", "/v2/models"])
def test_an_unknown_path_says_what_there_is(client: httpx.Client, path: str) -> None:
    error = assert_error(client.post(path, json={}), 404)
    assert "/v1/completions" in error["message"]


def test_a_wrong_method_is_refused_in_the_same_shape(client: httpx.Client) -> None:
    response = client.get(TEXT)
    assert_error(response, 405)
    assert response.headers["allow"] == "POST"


@pytest.mark.parametrize("tokens", [2048, 2049, 20_480])
def test_a_prompt_that_fills_the_context_is_refused_with_the_numbers(client: httpx.Client, tokens: int) -> None:
    error = assert_error(client.post(TEXT, json={"prompt": [5] * tokens, "max_tokens": 1}), 400)
    assert error["code"] == "context_length_exceeded"
    assert (error["n_prompt_tokens"], error["n_ctx"]) == (tokens, 2048)
    assert str(tokens) in error["message"]
    assert "2048" in error["message"]


def test_a_prompt_one_short_of_the_context_gets_one_token(client: httpx.Client) -> None:
    body = {"prompt": [5] * 2047, "max_tokens": 10, "ignore_eos": True}
    reply = client.post(TEXT, json=body).json()
    assert reply["usage"]["completion_tokens"] == 1
    assert reply["choices"][0]["finish_reason"] == "length"


def test_a_long_chat_is_refused_as_too_long(client: httpx.Client) -> None:
    body = {"messages": [{"role": "user", "content": "word " * 20_000}]}
    assert assert_error(client.post(CHAT, json=body), 400)["code"] == "context_length_exceeded"


@pytest.mark.parametrize("chunked", [True, False])
def test_a_huge_body_is_refused_before_it_is_read(
    service: Any, usual: str, client: httpx.Client, chunked: bool
) -> None:
    """Of 200 MB, at most the limit and what lies in buffers is taken."""
    host, port = service.url.removeprefix("http://").split(":")
    length = b"transfer-encoding: chunked" if chunked else b"content-length: 200000000"
    block = b"x" * 100_000
    piece = b"%x\r\n%s\r\n" % (len(block), block) if chunked else block
    sent = 0
    with socket.create_connection((host, int(port)), timeout=120) as sock:
        sock.sendall(b"POST /v1/completions HTTP/1.1\r\nhost: x\r\n" + length + b"\r\n\r\n")
        try:
            while sent < 200_000_000:
                sock.sendall(piece)
                sent += len(piece)
        except OSError:
            pass
        sock.settimeout(5)
        try:
            answer = sock.recv(10_000)
        except ConnectionResetError:
            answer = b""
    assert sent < 40_000_000
    assert answer == b"" or answer.startswith(b"HTTP/1.1 413")
    assert normal(client) == usual


def test_a_body_over_the_limit_gets_413(client: httpx.Client) -> None:
    response = client.post(TEXT, content=b'{"prompt": "' + b"x" * (9 << 20) + b'"}')
    assert assert_error(response, 413)["code"] == "body_too_large"


def test_a_long_prompt_does_not_hold_up_the_others(client: httpx.Client, service: Any) -> None:
    """A prompt of megabytes is refused while health keeps answering."""
    body = {"messages": [{"role": "user", "content": "def add(a, b): return a + b\n" * 200_000}]}
    statuses: list[int] = []

    def send() -> None:
        with httpx.Client(base_url=service.url, timeout=120, trust_env=False) as other:
            statuses.append(other.post(CHAT, json=body).status_code)

    sender = threading.Thread(target=send)
    sender.start()
    probes = 0
    while sender.is_alive():
        assert client.get("/health").status_code == 200
        probes += 1
        time.sleep(0.02)
    assert statuses == [400]
    assert probes > 1

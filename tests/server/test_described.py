"""Whatever is sent to whichever route, the reply is one that the API's description has; none is a 5xx, none hangs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from lookup_server.settings import Settings

from lookup_spec.engine.session import Session
from lookup_spec.params import SamplingParams
from lookup_spec.pipeline.engine import Engine
from lookup_spec.propose.prompt import Prompt
from tests.server.test_editors import APPLY, next_edit, user
from tests.server.test_llamacpp import VIM, VSCODE
from tests.server.test_structured import TOOLS_FIRST, WITH_CALLS
from tests.server.tiny_service import FIM, Running, running, tiny_model, until

CODE = "def add(a, b):\n    return a + b\n"
DOCUMENT = {"uri": "a.py", "text": CODE, "version": 3, "language_id": "python", "eol": "lf", "final_newline": True}
CHAT: dict[str, Any] = {**user("x"), "max_tokens": 4}
FUNCTION = {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}
SCHEMA = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}
TABBY = {"language": "python", "segments": {"prefix": "def add", "suffix": "\n", "filepath": "a.py"}, "temperature": 0}
# A good body of each kind for every route that takes one; they are what is spoilt.
BODIES: dict[str, list[dict[str, Any]]] = {
    "/v1/completions": [
        {"prompt": "x", "max_tokens": 4, "n": 2, "logprobs": 2, "stop": ["a"], "seed": 1, "temperature": 0.5},
        {"prompt": [[5, 6], [7]], "echo": True, "stream": True, "stream_options": {"include_speculation": True}},
        {"prompt": "def", "suffix": "x", "logit_bias": {"5": 3}, "bad_words": ["b"], "service_tier": "flex"},
        TABBY,
    ],
    "/v1/chat/completions": [
        {**CHAT, "logprobs": True, "top_logprobs": 2, "stream": True, "stream_options": {"include_usage": True}},
        {**CHAT, "prediction": {"type": "content", "content": CODE}, "stop": "a", "min_tokens": 1},
        {**CHAT, "response_format": {"type": "json_schema", "json_schema": {"name": "t", "schema": SCHEMA}}},
        {**CHAT, "tools": [{"type": "function", "function": FUNCTION}], "tool_choice": "auto"},
    ],
    "/v1/edits": [
        {"document": DOCUMENT, "instruction": "go", "options": {"max_tokens": 8, "trace": True}},
        {"document": DOCUMENT, "update": CODE, "context": [{"uri": "b.py", "text": "x"}], "stream": True},
        {"document": DOCUMENT, "edit_history": ["-a\n+b"], "cursor": {"line": 1, "character": 2}},
        {"document": {"base_sha256": "0" * 64}, "instruction": "x"},
    ],
    "/v1/edits/warm": [{"document": DOCUMENT, "context": [{"text": "x"}]}],
    "/v1/fim/completions": [{"prompt": "def", "suffix": "x", "max_tokens": 4, "random_seed": 1}],
    "/v1/edit/completions": [user(next_edit("a = 1"), max_tokens=8)],
    "/v1/apply/completions": [user(APPLY, max_tokens=8)],
    "/infill": [{**VIM, "n_predict": 4}, {**VSCODE, "n_predict": 4}],
    "/completion": [
        {"prompt": "x", "n_predict": 4, "n_cmpl": 2, "stream": True, "samplers": ["top_k"], "return_tokens": True},
        {"prompt": ["a", "b"], "n_predict": 4, "json_schema": SCHEMA, "response_fields": ["content", "timings/x"]},
        {"prompt": [5], "n_predict": 4, "grammar": 'root ::= "a"+'},
    ],
    "/tokenize": [{"content": "x", "add_special": True, "with_pieces": True, "parse_special": False}],
    "/detokenize": [{"tokens": [5, 6]}],
    "/apply-template": [user("x")],
    "/v1/batches": [
        {"input_file_id": "file-x", "endpoint": "/v1/completions", "completion_window": "24h", "metadata": {"a": "b"}}
    ],
}
ODD: list[Any] = [
    *(None, True, -1, 0, 1, 7, 2**31 - 1, 2**31, 2**63, 2**64, -(2**63), 1e308, -0.5, 0.5, 1e-300),
    *("", "\0", "a", "\u2028", "<|im_end|>", "<|fim_prefix|>", "```\n", "\U0001fae0", "x" * 3000, "\r\n", "../../x"),
    *([], {}, [[]], [None], [{}], {"type": "text"}, ["a"], [5], {"a": {"a": []}}, float("nan"), float("inf")),
]  # fmt: skip
QUIET = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]

jsons = st.recursive(
    st.sampled_from(ODD) | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


class Brief(Engine):
    """Answers with a few tokens, whatever is asked for."""

    def submit(self, prompt: Prompt, params: SamplingParams, **options: Any) -> Session:
        return super().submit(
            prompt, replace(params, max_tokens=min(params.max_tokens or 9, 9), min_tokens=0), **options
        )


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder: Path = tmp_path_factory.mktemp("batches")
    loaded = tiny_model(FIM)
    loaded.tokenizer.chat_template = TOOLS_FIRST + WITH_CALLS
    engine = Brief(loaded, max_context_tokens=640)
    with running(engine, Settings(batch_folder=folder, served_names=("tiny",))) as one:
        yield one


@pytest.fixture(scope="module")
def http(described: Running) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=described.url, timeout=120, trust_env=False) as one:
        yield one


@pytest.fixture(scope="module")
def paths(http: httpx.Client) -> dict[str, Any]:
    described: dict[str, Any] = http.get("/openapi.json").json()
    components = {"components": described["components"]}
    for operations in described["paths"].values():
        for operation in operations.values():
            for reply in operation["responses"].values():
                for content in reply.get("content", {}).values():
                    content["schema"] |= components
    return described["paths"]


def spoilt(data: st.DataObject, body: Any, names: list[str]) -> Any:
    """The body with something else in one place, without it, or with something more."""
    if isinstance(body, dict) and body and data.draw(st.integers(0, 3)):
        where = data.draw(st.sampled_from(sorted(body)))
        return {**body, where: spoilt(data, body[where], [])}
    if isinstance(body, list) and body and data.draw(st.integers(0, 3)):
        place = data.draw(st.integers(0, len(body) - 1))
        return [*body[:place], spoilt(data, body[place], []), *body[place + 1 :]]
    if isinstance(body, dict) and names and data.draw(st.booleans()):
        return {**body, data.draw(st.sampled_from(names)): data.draw(jsons)}
    if isinstance(body, dict) and body and data.draw(st.booleans()):
        gone = data.draw(st.sampled_from(sorted(body)))
        return {name: value for name, value in body.items() if name != gone}
    return data.draw(jsons)


def check(response: httpx.Response, operation: dict[str, Any]) -> None:
    """The reply has a status, a type and a form that the description has, and it is no failure of the service."""
    assert response.status_code < 500, response.text
    told = operation["responses"].get(str(response.status_code))
    assert told is not None, (response.status_code, response.text)
    kind = response.headers["content-type"].partition(";")[0]
    assert kind in told["content"], (kind, response.text)
    if kind == "application/json":
        Draft202012Validator(told["content"][kind]["schema"]).validate(response.json())
    if kind == "text/event-stream":
        for block in response.text.split("\n\n")[:-1]:
            if block not in ("data: [DONE]", ": hb"):
                event = json.loads(block.removeprefix("data: "))
                assert event.get("error", {}).get("type") != "server_error", event


def fields_of(operation: dict[str, Any]) -> list[str]:
    [schema] = [content["schema"] for content in operation["requestBody"]["content"].values()]
    return sorted({name for form in schema.get("oneOf", [schema]) for name in form["properties"]})


def send_spoilt(described: Running, http: httpx.Client, operation: dict[str, Any], path: str, data: Any) -> None:
    body = data.draw(st.sampled_from(BODIES[path]))
    for _ in range(data.draw(st.integers(0, 2))):
        body = spoilt(data, body, fields_of(operation))
    check(http.post(path, content=json.dumps(body).encode("utf-8", "surrogatepass")), operation)
    until(lambda: described.runner.active == 0)


def test_every_route_that_takes_json_has_an_example(paths: dict[str, Any]) -> None:
    posts = {
        path: str(operations["post"].get("requestBody")) for path, operations in paths.items() if "post" in operations
    }
    assert {path for path, taken in posts.items() if "application/json" in taken} == set(BODIES)


@pytest.mark.parametrize(("path", "number"), [(path, n) for path, bodies in BODIES.items() for n in range(len(bodies))])
def test_the_examples_get_a_reply_of_the_described_form(
    http: httpx.Client, paths: dict[str, Any], path: str, number: int
) -> None:
    response = http.post(path, json=BODIES[path][number])
    check(response, paths[path]["post"])
    # Files and documents are named that do not exist.
    missing = {"/v1/batches": 400, "/v1/edits": 409 if number == 3 else 200}
    assert response.status_code == missing.get(path, 200)


@pytest.mark.parametrize("path", BODIES)
@settings(max_examples=4, deadline=None, suppress_health_check=QUIET)
@given(data=st.data())
def test_a_spoilt_body_gets_a_reply_of_the_described_form(
    described: Running, http: httpx.Client, paths: dict[str, Any], path: str, data: st.DataObject
) -> None:
    send_spoilt(described, http, paths[path]["post"], path, data)


@pytest.mark.slow
@pytest.mark.parametrize("path", BODIES)
@settings(max_examples=250, deadline=None, suppress_health_check=QUIET)
@given(data=st.data())
def test_many_spoilt_bodies_get_a_reply_of_the_described_form(
    described: Running, http: httpx.Client, paths: dict[str, Any], path: str, data: st.DataObject
) -> None:
    send_spoilt(described, http, paths[path]["post"], path, data)


@settings(max_examples=15, deadline=None, suppress_health_check=QUIET)
@given(data=st.data())
def test_any_name_and_any_parameter_gets_a_reply_of_the_described_form(
    http: httpx.Client, paths: dict[str, Any], data: st.DataObject
) -> None:
    asking = [(path, method) for path, operations in paths.items() for method in operations if method != "post"]
    path, method = data.draw(st.sampled_from(asking))
    query = {}
    for parameter in paths[path][method].get("parameters", ()):
        text = data.draw(
            st.sampled_from(("", "x", "1", "-1", "999999999999999999999", "tiny", "..", "a/b")) | st.text(max_size=6)
        )
        if parameter["in"] == "path":
            path = path.replace("{" + parameter["name"] + "}", quote(text.strip("/.") or "x", safe=""))
        elif data.draw(st.booleans()):
            query[parameter["name"]] = text
    [operation] = [paths[known][method] for known in paths if method in paths[known] and _fits(known, path)][:1]
    check(http.request(method, path, params=query), operation)


def _fits(known: str, path: str) -> bool:
    parts, told = path.strip("/").split("/"), known.strip("/").split("/")
    return len(parts) == len(told) and all(a == b or b.startswith("{") for a, b in zip(parts, told, strict=True))


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"purpose": "batch"},
        {"purpose": "fine-tune"},
        {"purpose": "batch", "expires_after[anchor]": "x"},
        {"purpose": "batch", "expires_after[anchor]": "created_at", "expires_after[seconds]": "7200"},
        {"purpose": "batch", "expires_after[anchor]": "created_at", "expires_after[seconds]": "1"},
        {"purpose": "batch", "expires_after[anchor]": "created_at", "expires_after[seconds]": "9" * 5000},
    ],
)
@pytest.mark.parametrize("files", [{}, {"file": ("../a\0.jsonl", b"\xff")}])
def test_uploads_and_batches_get_replies_of_the_described_form(
    http: httpx.Client, paths: dict[str, Any], files: Any, fields: dict[str, str]
) -> None:
    uploaded = http.post("/v1/files", files=files, data=fields)
    check(uploaded, paths["/v1/files"]["post"])
    check(http.get("/v1/files"), paths["/v1/files"]["get"])
    check(http.get("/v1/batches"), paths["/v1/batches"]["get"])
    if uploaded.status_code == 200:
        name = uploaded.json()["id"]
        body = {"input_file_id": name, "endpoint": "/v1/completions", "completion_window": "24h"}
        batch = http.post("/v1/batches", json=body)
        check(batch, paths["/v1/batches"]["post"])
        until(lambda: http.get(f"/v1/batches/{batch.json()['id']}").json()["status"] == "failed")
        check(http.get(f"/v1/batches/{batch.json()['id']}"), paths["/v1/batches/{name}"]["get"])
        check(http.post(f"/v1/batches/{batch.json()['id']}/cancel"), paths["/v1/batches/{name}/cancel"]["post"])
        check(http.get(f"/v1/files/{name}/content"), paths["/v1/files/{name}/content"]["get"])
        check(http.delete(f"/v1/files/{name}"), paths["/v1/files/{name}"]["delete"])

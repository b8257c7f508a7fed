"""Every call has a name, in its response and in the log, and the log never holds a text."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator

import httpx
import pytest
from lookup_server.logs import JsonLines, TextLines, set_up_logs
from lookup_server.settings import Settings

from lookup_spec.model.load import LoadedModel
from tests.server.tiny_service import SlowEngine, running


@pytest.fixture
def log(capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[[], str]]:
    """What a service says on stderr, once logs are set up."""
    root, ours = logging.getLogger(), logging.getLogger("lookup_server")
    level = root.level, ours.level
    yield lambda: capsys.readouterr().err
    root.handlers = [one for one in root.handlers if not isinstance(one.formatter, JsonLines | TextLines)]
    root.setLevel(level[0])
    ours.setLevel(level[1])


@pytest.mark.parametrize(("sent", "kept"), [("abc-1", True), ("", False), ("a b", False), ("x" * 129, False)])
def test_a_name_that_the_client_gives_comes_back(client: httpx.Client, sent: str, kept: bool) -> None:
    headers = {"x-request-id": sent, "origin": "https://ide.example"}
    for path in ("/health", "/nope", "/v1/completions"):
        response = client.get(path, headers=headers)
        name = response.headers["x-request-id"]
        assert (name == sent) == kept
        assert kept or name.startswith("req_")
        assert "x-request-id" in response.headers["access-control-expose-headers"]


def test_the_log_tells_what_became_of_each_request_but_no_text(loaded: LoadedModel, log: Callable[[], str]) -> None:
    set_up_logs("json", "info")
    body = {"prompt": "zebra quartz", "max_tokens": 4, "ignore_eos": True, "stop": ["walrus"]}
    key = {"authorization": "Bearer K1"}
    first, second, third = ({"x-request-id": name} for name in ("first", "second", "third"))
    with (
        running(SlowEngine(loaded), Settings(api_keys=("K1",))) as service,
        httpx.Client(base_url=service.url, timeout=120, trust_env=False) as client,
    ):
        text = client.post("/v1/completions", json=body, headers={**key, **first}).json()["choices"][0]["text"]
        client.get("/health")
        client.post("/v1/completions", json={"prompt": "walrus", "max_token": 3}, headers={**key, **second})
        client.post("/v1/completions", content=b'{"prompt": "walrus', headers=third)
    said = log()
    # Another service's last call may still be on its way into the log.
    found = map(json.loads, said.splitlines())
    lines = [line for line in found if line.get("request_id") in ("first", "second", "third")]
    assert [(line.get("route"), line.get("status")) for line in lines] == [
        (None, None),
        ("/v1/completions", 200),
        ("/v1/completions", 400),
        ("other", 401),
    ]
    answer, call, *_ = lines
    assert answer["request_id"] == call["request_id"] == "first"
    assert (answer["finish_reason"], answer["completion_tokens"]) == ("length", 4)
    assert len(call["tenant"]) == 12
    for word in ("zebra", "walrus", "K1", text):
        assert word not in said


def test_text_lines_name_the_request(log: Callable[[], str]) -> None:
    set_up_logs("text", "info")
    logging.getLogger("lookup_server.calls").info("hello", extra={"about": {"request_id": "r1"}})
    logging.getLogger("uvicorn").info("not ours")
    logging.getLogger("lookup_server").debug("too fine")
    assert log() == "hello [r1]\n"

"""Two keys at one service: nothing that one does shows in what the other gets, nor in what it costs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fakes.scribe import Scribe
from lookup_server.settings import Settings

from lookup_spec.model.load import LoadedModel
from lookup_spec.pipeline.engine import Engine
from tests.server.edit_client import events_of
from tests.server.tiny_service import FIM, running, tiny_model, until

CODE = "".join(f"def add_{k}(a, b):\n    return a + b + {k}\n\n\n" for k in range(8))
ANSWER = f"{CODE.replace('add_3(a, b)', 'plus(a, b)')}```"
SPECULATION: dict[str, Any] = {"stream_options": {"include_usage": True, "include_speculation": True}}
CHAT: dict[str, Any] = {
    "messages": [{"role": "user", "content": f"Rename add_3.\n```python\n{CODE}```"}],
    "stream": True,
    **SPECULATION,
}
TRACED = {"trace": True}
EDIT: dict[str, Any] = {
    "document": {"uri": "a.py", "text": CODE},
    "instruction": "Rename add_3.",
    "stream": True,
    "options": TRACED,
}
ASKED = [("/v1/chat/completions", CHAT), ("/v1/edits", EDIT)]
JSON_FORM = {"name": "form", "schema": {"type": "object", "properties": {"a": {"enum": ["x", "y"]}}, "required": ["a"]}}
MERCURY = f"<|original_code|>\n{CODE}\n<|/original_code|>\n\n<|update_snippet|>\nx = 1\n<|/update_snippet|>"
# The other ways to have something computed, drafted or kept.
OTHERS: list[tuple[str, dict[str, Any]]] = [
    ("/v1/edits/warm", {"document": EDIT["document"]}),
    (
        "/v1/edits",
        {"document": EDIT["document"], "update": "def plus(a, b):\n    return a + b + 3\n", "options": TRACED},
    ),
    (
        "/v1/edits",
        {
            "document": EDIT["document"],
            "edit_history": ["-a\n+b"],
            "cursor": {"line": 9, "character": 0},
            "options": TRACED,
        },
    ),
    ("/v1/completions", {"prompt": CODE, "max_tokens": 40, "temperature": 0, "stream": True, **SPECULATION}),
    ("/v1/chat/completions", {**CHAT, "prediction": {"type": "content", "content": CODE}}),
    (
        "/v1/chat/completions",
        {**CHAT, "temperature": 0, "response_format": {"type": "json_schema", "json_schema": JSON_FORM}},
    ),
    ("/v1/fim/completions", {"prompt": CODE, "suffix": "print(1)\n", "max_tokens": 40}),
    ("/v1/apply/completions", {"messages": [{"role": "user", "content": MERCURY}]}),
    ("/completion", {"prompt": CODE, "n_predict": 40, "seed": 1}),
    ("/infill", {"input_prefix": CODE, "input_suffix": "print(1)\n", "n_predict": 40, "seed": 1}),
]
TIMES = {"created", "id", "edit_id", "seconds", "prefill_seconds", "decode_seconds"}
PACE = ("_ms", "_per_second")  # how llama.cpp's times end


@contextmanager
def guarded(loaded: LoadedModel) -> Iterator[httpx.Client]:
    """A service whose passes take no time that could be measured, so that what it drafts does not follow the clock."""
    with (
        running(Scribe(loaded, ANSWER), Settings(api_keys=("one", "two"))) as service,
        httpx.Client(base_url=service.url, timeout=120, trust_env=False) as client,
    ):
        yield client


def timeless(value: Any) -> Any:
    """An event without names and times."""
    if isinstance(value, dict):
        return {key: timeless(one) for key, one in value.items() if key not in TIMES and not key.endswith(PACE)}
    return [timeless(one) for one in value] if isinstance(value, list) else value


def ask(client: httpx.Client, key: str, path: str, body: dict[str, Any]) -> list[Any]:
    """Everything that a stream tells: texts, what was proposed by what, how many passes it took, and what was there."""
    reply = client.post(path, json=body, headers={"authorization": f"Bearer {key}"}).raise_for_status()
    if not reply.headers["content-type"].startswith("text/event-stream"):
        return [timeless(reply.json())]
    return [timeless(event) for event in events_of(reply.text.replace("data: [DONE]\n\n", ""))]


def test_what_one_key_asks_changes_nothing_for_another(loaded: LoadedModel) -> None:
    """Event by event: the text, its sources, drafts, passes and reused tokens are those of a service of one's own."""
    with guarded(loaded) as client:
        alone = [ask(client, "two", *asked) for asked in ASKED * 2]
    assert alone[:2] != alone[2:]  # what a key has asked shows in what it gets later: there is something to keep apart
    with guarded(loaded) as client:
        for asked in ASKED * 3:
            ask(client, "one", *asked)
        assert [ask(client, "two", *asked) for asked in ASKED * 2] == alone


def test_running_at_the_same_time_shares_nothing_either(loaded: LoadedModel) -> None:
    """A newer edit of the same document makes the older one stale only where both are the same key's."""
    with guarded(loaded) as client:
        alone = ask(client, "two", "/v1/edits", EDIT)
    with (
        guarded(loaded) as client,
        client.stream("POST", "/v1/edits", json=EDIT, headers={"authorization": "Bearer one"}) as other,
    ):
        assert ask(client, "two", "/v1/edits", EDIT) == alone
        events = events_of(other.read().decode())
    assert [timeless(event) for event in events] == alone
    assert events[-1]["finish_reason"] == "stop"


@pytest.mark.slow
def test_whatever_is_asked_changes_nothing_for_another() -> None:
    """Every other kind of request: what the second key is told is what it is told where the first never came."""
    filling = tiny_model(FIM)
    with guarded(filling) as client:
        alone = [ask(client, "two", *asked) for asked in OTHERS]
    with guarded(filling) as client:
        first = [[ask(client, "one", *asked) for asked in OTHERS] for _ in range(2)]
        assert [ask(client, "two", *asked) for asked in OTHERS] == alone
    # What a key has asked shows in half of what it asks again: there is something to keep apart.
    assert sum(one != again for one, again in zip(*first, strict=True)) > 3


def test_a_batch_leaves_something_to_its_own_key_only(loaded: LoadedModel, tmp_path: Path) -> None:
    """The prompts of a batch are computed for its owner: who asks for the same behind it finds nothing."""
    body = {"prompt": CODE, "max_tokens": 4, "temperature": 0}
    line = json.dumps({"custom_id": "a", "method": "POST", "url": "/v1/completions", "body": body}).encode()
    keys = {key: {"authorization": f"Bearer {key}"} for key in ("one", "two")}
    settings = Settings(api_keys=tuple(keys), batch_folder=tmp_path)
    with (
        running(Engine(loaded), settings) as service,
        httpx.Client(base_url=service.url, timeout=120, trust_env=False, headers=keys["one"]) as client,
    ):
        file = client.post("/v1/files", files={"file": ("a", line)}, data={"purpose": "batch"}).json()["id"]
        asked = {"input_file_id": file, "endpoint": "/v1/completions", "completion_window": "24h"}
        batch = client.post("/v1/batches", json=asked).json()["id"]
        until(lambda: client.get(f"/v1/batches/{batch}").json()["status"] == "completed")
        found = {
            key: client.post("/v1/completions", json=body, headers=headers).json()["usage"]["prompt_tokens_details"]
            for key, headers in reversed(keys.items())
        }
    assert found["two"]["cached_tokens"] == 0 < found["one"]["cached_tokens"]

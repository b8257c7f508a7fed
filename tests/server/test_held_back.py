"""Text that was held back, because it might have been the beginning of a stop string, comes at every other end."""

from __future__ import annotations

import json

import httpx
from fakes.scribe import Scribe
from lookup_server.settings import Settings

from lookup_spec.model.load import LoadedModel
from tests.server.tiny_service import running

TEXT = "read write close"
STOP = "close\nexit"


def ask(engine: Scribe, **body: object) -> tuple[tuple[str, str | None], tuple[str, str | None]]:
    """Text and finish reason (or the kind of error), of a stream and of a whole reply."""
    body = {"prompt": "do it", "stop": [STOP], "max_tokens": 100, **body}
    with (
        running(engine, Settings()) as service,
        httpx.Client(base_url=f"{service.url}/v1", timeout=120, trust_env=False) as client,
    ):
        *blocks, _ = client.post("/completions", json={**body, "stream": True}).text.split("\n\n")
        events = [json.loads(block.removeprefix("data: ")) for block in blocks if not block.endswith("[DONE]")]
        whole = client.post("/completions", json=body).json()
    choices = [event["choices"][0] for event in events if "choices" in event]
    text = "".join(choice["text"] for choice in choices)
    if "error" in events[-1]:
        return (text, events[-1]["error"]["type"]), ("", whole["error"]["type"])
    [choice] = whole["choices"]
    return (text, choices[-1]["finish_reason"]), (choice["text"], choice["finish_reason"])


def test_at_an_end_token(loaded: LoadedModel) -> None:
    assert ask(Scribe(loaded, TEXT)) == ((TEXT, "stop"), (TEXT, "stop"))


def test_where_the_limit_is_reached(loaded: LoadedModel) -> None:
    engine = Scribe(loaded, f"{TEXT} the door")
    limit = len(engine.template.encode_data(TEXT))
    assert ask(engine, max_tokens=limit) == ((TEXT, "length"), (TEXT, "length"))


def test_before_an_error(loaded: LoadedModel) -> None:
    (text, kind), (_, whole_kind) = ask(Scribe(loaded, TEXT, ended=False))
    assert text == TEXT
    assert kind == whole_kind == "server_error"


def test_and_nothing_of_a_stop_string_that_completes(loaded: LoadedModel) -> None:
    assert ask(Scribe(loaded, f"{TEXT}\nexit now")) == (("read write ", "stop"), ("read write ", "stop"))

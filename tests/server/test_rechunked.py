"""A stream says the same however the network cuts it: to OpenAI's own reader, byte by byte and in any pieces."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import httpx
import pytest
from fakes.scribe import Scribe
from hypothesis import given, settings
from hypothesis import strategies as st
from lookup_server.settings import Settings
from openai._streaming import SSEDecoder

from lookup_spec.model.load import LoadedModel
from tests.server.tiny_service import SlowEngine, running

ANSWER = "```\na\u2028b\u2029c\x85 \U0001fae0 naïve\r\n: hb\n\ndata: [DONE]\n\nevent: x\n\n```"
STREAMS: list[tuple[str, dict[str, Any]]] = [
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]}),
    ("/v1/completions", {"prompt": "x", "max_tokens": 200, "echo": True}),
    ("/completion", {"prompt": "x"}),
    ("/v1/edits", {"document": {"uri": "a.md", "text": "x\n"}, "instruction": "go", "options": {"trace": True}}),
]


@pytest.fixture(scope="module")
def recorded(loaded: LoadedModel) -> dict[str, bytes]:
    """The bytes of one stream of each kind; each has a comment somewhere, as a slow one would."""
    with (
        running(Scribe(loaded, ANSWER), Settings()) as service,
        httpx.Client(base_url=service.url, timeout=120, trust_env=False) as client,
    ):
        return {path: client.post(path, json={**body, "stream": True}).content for path, body in STREAMS}


def read(parts: Sequence[bytes]) -> list[str]:
    def feed() -> Iterator[bytes]:
        yield from parts

    return [event.data for event in SSEDecoder().iter_bytes(feed())]


@pytest.mark.parametrize("path", [path for path, _ in STREAMS])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_cut_gives_the_same_events(recorded: dict[str, bytes], path: str, data: st.DataObject) -> None:
    stream = recorded[path]
    whole = [block.removeprefix("data: ") for block in stream.decode().split("\n\n") if block.startswith("data: ")]
    places = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=40)))
    parts = [stream[start:end] for start, end in zip([0, *places], [*places, len(stream)], strict=True)]
    assert read(parts) == whole
    assert all(data == "[DONE]" or json.loads(data) for data in whole)


@pytest.mark.parametrize("path", [path for path, _ in STREAMS])
def test_bytes_one_by_one_and_comments_between_events_change_nothing(recorded: dict[str, bytes], path: str) -> None:
    stream = recorded[path]
    whole = read([stream])
    assert len(whole) > 2
    assert read([bytes([byte]) for byte in stream]) == whole
    assert read([stream.replace(b"\n\n", b"\n\n: hb\n\n")]) == whole


def test_what_is_sent_ends_with_an_event_each_time(loaded: LoadedModel) -> None:
    """So a client that looks at one packet at a time, as some do, finds whole events in it."""
    body = {"prompt": "for item", "max_tokens": 10, "ignore_eos": True, "stream": True}
    with (
        running(SlowEngine(loaded), Settings(heartbeat_seconds=0.005)) as service,
        httpx.Client(base_url=service.url, timeout=120, trust_env=False) as client,
        client.stream("POST", "/v1/completions", json=body) as reply,
    ):
        parts = list(reply.iter_raw())
    assert len(parts) > 5
    assert all(part.endswith(b"\n\n") for part in parts)

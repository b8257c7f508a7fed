"""Streams whose packets tell nothing about what was accepted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lookup_server.settings import Settings
from lookup_server.sse import event, smoothed

from lookup_spec.model.load import LoadedModel
from lookup_spec.pipeline.engine import Engine
from tests.server.tiny_service import running


def read(stream: bytes | bytearray) -> list[str]:
    """Events as the standard reads them: comments say nothing, an empty line ends an event if it has data."""
    found, data = [], []
    for line in stream.decode().split("\n"):
        if line.startswith("data: "):
            data.append(line.removeprefix("data: "))
        elif not line and data:
            found.append("\n".join(data))
            data = []
    return found


async def blocks(events: list[bytes], size: int) -> list[bytes]:
    async def feed() -> AsyncIterator[bytes]:
        for one in events:
            await asyncio.sleep(0)
            yield one

    return [block async for block in smoothed(feed(), 0.0001, size)]


@given(st.lists(st.text(max_size=40), max_size=12), st.integers(1, 64))
def test_blocks_are_of_one_size_and_say_the_same(texts: list[str], size: int) -> None:
    """Whatever the events are and however they are cut."""
    sent = asyncio.run(blocks([event(text) for text in texts], size))
    assert all(len(block) == size for block in sent)
    assert [json.loads(text) for text in read(b"".join(sent))] == texts


def test_an_error_comes_behind_what_was_sent_before() -> None:
    async def failing() -> AsyncIterator[bytes]:
        yield b"data: 1\n\n"
        raise OSError("broken")

    found = bytearray()

    async def run() -> None:
        async for block in smoothed(failing(), 0.0001, 16):
            found.extend(block)

    with pytest.raises(OSError, match="broken"):
        asyncio.run(run())
    assert read(found) == ["1"]


@pytest.mark.parametrize("speculation", [True, False])
def test_a_smooth_stream_says_what_a_whole_reply_says(loaded: LoadedModel, speculation: bool) -> None:
    body = {"prompt": "def add(a, b):\n" * 5, "max_tokens": 60, "temperature": 0, "speculation": speculation}
    with (
        running(Engine(loaded), Settings(smooth_stream_ms=5)) as service,
        httpx.Client(base_url=service.url, timeout=120, trust_env=False) as client,
    ):
        whole = client.post("/v1/completions", json=body).json()["choices"][0]["text"]
        with client.stream("POST", "/v1/completions", json={**body, "stream": True}) as reply:
            chunks = list(reply.iter_raw())
    stream = b"".join(chunks)
    assert len(stream) % 2048 == 0
    *events, done = read(stream)
    assert "".join(json.loads(one)["choices"][0]["text"] for one in events) == whole
    assert done == "[DONE]"

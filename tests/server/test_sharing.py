"""What requests share, and who comes first: each key is a tenant, and usage tells what was reused."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import httpx
import pytest
from lookup_server.settings import Settings

from lookup_spec.model.load import LoadedModel
from lookup_spec.pipeline.engine import Engine
from tests.server.tiny_service import SlowEngine, running, until

CODE = "".join(f"def add_{n}(a, b):\n    return a + b + {n}\n" for n in range(20))


@pytest.fixture(scope="module")
def guarded(loaded: LoadedModel) -> Iterator[str]:
    with running(Engine(loaded), Settings(api_keys=("one", "two"))) as one:
        yield one.url


def ask(url: str, key: str, path: str, instruction: str) -> dict[str, int]:
    """The prompt's length and how much of it was there."""
    prompt = (
        {"messages": [{"role": "user", "content": CODE + instruction}]}
        if "chat" in path
        else {"prompt": CODE + instruction}
    )
    reply = httpx.post(
        url + path,
        json={**prompt, "max_tokens": 3},
        headers={"authorization": f"Bearer {key}"},
        timeout=120,
        trust_env=False,
    )
    usage = reply.json()["usage"]
    return {"prompt": usage["prompt_tokens"], "cached": usage["prompt_tokens_details"]["cached_tokens"]}


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
def test_a_document_is_computed_once_for_each_key(guarded: str, path: str) -> None:
    """A second instruction finds the document, and another key's first one does not."""
    first, second = ask(guarded, "one", path, "add types"), ask(guarded, "one", path, "rename all")
    assert first["cached"] < 10
    assert second["cached"] > second["prompt"] * 0.9
    assert ask(guarded, "two", path, "add types")["cached"] == first["cached"]


def test_what_another_key_sent_shows_in_nothing(loaded: LoadedModel) -> None:
    """A secret that one key sent again and again leaves no trace in what another is told, whose prompt begins like it:
    text and usage are those of a service that never saw it, and the first key finds its own text again."""
    secret = "# config\nDB_PASSWORD = 'zebra-quartz-41'\nSummarize this file."

    def asked(url: str, key: str, prompt: str) -> list[Any]:
        headers = {"authorization": f"Bearer {key}"}
        body = {"prompt": prompt, "max_tokens": 12, "temperature": 0, "ignore_eos": True}
        reply = httpx.post(url + "/v1/completions", json=body, headers=headers, timeout=120, trust_env=False).json()
        return [reply["choices"][0]["text"], reply["usage"]]

    begun = secret[: secret.index("zebra")]
    settings = Settings(api_keys=("one", "two"))
    with running(Engine(loaded), settings) as used, running(Engine(loaded), settings) as fresh:
        first, again = [asked(used.url, "one", secret) for _ in range(8)][:2]
        assert again[1]["prompt_tokens_details"]["cached_tokens"] > first[1]["prompt_tokens_details"]["cached_tokens"]
        for prompt in (begun, begun + "zebra", secret):
            assert asked(used.url, "two", prompt) == asked(fresh.url, "two", prompt)


def test_a_flexible_request_lets_others_go_first(loaded: LoadedModel) -> None:
    """With one place, it gives way in the middle of its answer, and has the same answer in the end."""
    body = {"prompt": CODE, "ignore_eos": True, "temperature": 0}
    with running(SlowEngine(loaded, max_sessions=1), Settings(max_sessions=1)) as one, ThreadPoolExecutor(1) as pool:

        def post(**more: object) -> str:
            reply = httpx.post(one.url + "/v1/completions", json={**body, **more}, timeout=120, trust_env=False)
            return str(reply.json()["choices"][0]["text"])

        flexible = pool.submit(post, max_tokens=60, speculation=False, service_tier="flex")
        until(lambda: one.runner.steps > 3)
        urgent = post(max_tokens=3)
        assert not flexible.done()
        wait([flexible], timeout=120)
        assert flexible.result() == post(max_tokens=60)
        assert flexible.result().startswith(urgent)
        assert one.runner.engine.load.preempted == 1

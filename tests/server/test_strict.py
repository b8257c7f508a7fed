"""With ``strict_openai``, what OpenAI refuses is refused; without, it is served."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from lookup_server.settings import Settings

from lookup_spec.model.load import LoadedModel
from lookup_spec.pipeline.engine import Engine
from tests.server.tiny_service import running

TEXT: dict[str, Any] = {"model": "tiny", "prompt": "x", "max_tokens": 2}
CHAT: dict[str, Any] = {"model": "tiny", "messages": [{"role": "user", "content": "x"}], "max_tokens": 2}
PREDICTION = {"type": "content", "content": "x"}
CASES: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (TEXT, {"top_k": 5}, "top_k"),
    (CHAT, {"speculation": True}, "speculation"),
    (CHAT, {"stream": True, "stream_options": {"include_speculation": True}}, "stream_options.include_speculation"),
    (TEXT, {"model": ""}, "model"),
    (TEXT, {"temperature": 2.5}, "temperature"),
    (CHAT, {"presence_penalty": -3}, "presence_penalty"),
    (CHAT, {"stop": list("abcde")}, "stop"),
    (CHAT, {"prediction": PREDICTION, "logprobs": True}, "logprobs"),
    (CHAT, {"prediction": PREDICTION, "frequency_penalty": 1}, "frequency_penalty"),
    (CHAT, {"prediction": PREDICTION, "max_completion_tokens": 3}, "max_completion_tokens"),
]


@pytest.fixture(scope="module")
def strict(loaded: LoadedModel) -> Iterator[httpx.Client]:
    settings = Settings(served_names=("tiny",), strict_openai=True)
    with (
        running(Engine(loaded), settings) as one,
        httpx.Client(base_url=one.url, timeout=120, trust_env=False) as client,
    ):
        yield client


@pytest.mark.parametrize(("base", "fields", "param"), CASES, ids=[param for *_, param in CASES])
def test_what_openai_refuses_is_refused_only_where_asked(
    strict: httpx.Client, client: httpx.Client, base: dict[str, Any], fields: dict[str, Any], param: str
) -> None:
    path = "/v1/completions" if base is TEXT else "/v1/chat/completions"
    assert client.post(path, json={**base, **fields}).status_code == 200
    refused = strict.post(path, json={**base, **fields})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, param)


def test_what_openai_takes_is_served(strict: httpx.Client) -> None:
    extra = {"user": "u", "seed": 3, "stop": ["a", "b"], "temperature": 0, "logit_bias": {"5": 1}}
    assert strict.post("/v1/completions", json={**TEXT, **extra}).status_code == 200
    more = {"metadata": {"a": "b"}, "store": False, "service_tier": "auto", "prediction": PREDICTION}
    assert strict.post("/v1/chat/completions", json={**CHAT, **extra, **more}).status_code == 200

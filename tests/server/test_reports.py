"""What users of other servers have reported, as promises of this one; where it is not said elsewhere."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from fakes.scribe import Scribe
from lookup_server.settings import Settings

from lookup_spec.model.load import LoadedModel
from lookup_spec.pipeline.engine import Engine
from tests.server.test_shapes import events, streamed_text, text_of
from tests.server.tiny_service import FIM, running, tiny_model

CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "x"}]}
TEXT: dict[str, Any] = {"prompt": "x", "max_tokens": 100}
BOTH = [("/v1/chat/completions", CHAT), ("/v1/completions", TEXT), ("/completion", {"prompt": "x"})]


@pytest.fixture(scope="module")
def scribe(loaded: LoadedModel) -> Scribe:
    return Scribe(loaded, "")


@pytest.fixture(scope="module")
def writer(scribe: Scribe) -> Any:
    with (
        running(scribe, Settings()) as service,
        httpx.Client(base_url=service.url, timeout=120, trust_env=False) as client,
    ):
        yield client


@pytest.mark.parametrize(("path", "body"), BOTH[:2])
@pytest.mark.parametrize("text", ["a \U0001fae0 b", "\U0001fae0", "naïve ✅ 日本 👩‍👩‍👧 e\u0301"])
def test_a_character_of_several_tokens_is_never_torn(
    scribe: Scribe, writer: httpx.Client, path: str, body: dict[str, Any], text: str
) -> None:
    """Every delta is made of whole characters, with speculation and without."""
    scribe.say(text)
    assert len(scribe.template.encode_data(text)) > len(text) + 1
    for speculation in (True, False):
        chunks = events(writer, path, {**body, "speculation": speculation})
        assert "\ufffd" not in "".join(json.dumps(chunk, ensure_ascii=False) for chunk in chunks)
        assert streamed_text(chunks) == text


@pytest.mark.parametrize("stop", [[], [""], "", ["never"]])
@pytest.mark.parametrize(("path", "body"), BOTH[:2])
def test_the_models_own_end_counts_beside_stop_strings_and_is_told_as_stop(
    scribe: Scribe, writer: httpx.Client, path: str, body: dict[str, Any], stop: Any
) -> None:
    scribe.say("all said")
    reply = writer.post(path, json={**body, "stop": stop}).raise_for_status().json()
    assert (text_of(reply), reply["choices"][0]["finish_reason"]) == ("all said", "stop")
    assert events(writer, path, {**body, "stop": stop})[-1]["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize(("path", "body"), BOTH)
@pytest.mark.parametrize("tokens", [1, 2, 3])
def test_a_stop_string_within_a_token_or_over_several_ends_the_answer_before_it(
    scribe: Scribe, writer: httpx.Client, path: str, body: dict[str, Any], tokens: int
) -> None:
    scribe.say("return a + b\n    print(item)\n")
    stop = {1: "etur", 2: "+ b", 3: "b\n    pr"}[tokens]
    reply = writer.post(path, json={**body, "stop": [stop]}).raise_for_status().json()
    told = reply["content"] if "content" in reply else text_of(reply)
    assert told == "return a + b\n    print(item)\n".partition(stop)[0]


def test_log_probabilities_of_bytes_that_are_no_character_have_a_name(scribe: Scribe, writer: httpx.Client) -> None:
    """Such a token's text is written as its bytes, where the API has no place for bytes themselves."""
    scribe.say("\U0001fae0")
    logprobs = writer.post("/v1/completions", json={**TEXT, "logprobs": 1}).json()["choices"][0]["logprobs"]
    assert [token for token in logprobs["tokens"] if token.startswith("bytes:\\x")]
    content = writer.post("/v1/chat/completions", json={**CHAT, "logprobs": True}).json()["choices"][0]["logprobs"]
    assert bytes(byte for entry in content["content"] for byte in entry["bytes"] or ()) == "\U0001fae0".encode()


@pytest.mark.parametrize(("path", "body"), BOTH[:2])
def test_several_greedy_answers_are_several_times_the_same(client: httpx.Client, path: str, body: Any) -> None:
    reply = client.post(path, json={**body, "n": 3, "temperature": 0, "max_tokens": 9}).json()
    assert [choice["index"] for choice in reply["choices"]] == [0, 1, 2]
    assert len({text_of(reply, index) for index in range(3)}) == 1


def test_filling_in_works_where_nothing_stands_before_the_cursor_or_behind() -> None:
    with (
        running(Engine(tiny_model(FIM)), Settings()) as service,
        httpx.Client(base_url=service.url, timeout=120, trust_env=False) as client,
    ):
        body = {"n_predict": 8, "ignore_eos": True, "prompt": ""}
        for before, after in (("", ""), ("", "return a\n"), ("def add(a, b):\n", "")):
            told = client.post("/infill", json={**body, "input_prefix": before, "input_suffix": after}).json()
            assert told["tokens_predicted"] == 8
            assert told["prompt"].endswith(f"<|fim_prefix|>{before}<|fim_suffix|>{after}<|fim_middle|>")


def test_a_pre_flight_of_a_page_that_may_call_is_answered(client: httpx.Client) -> None:
    asked = {"origin": "https://ide.example", "access-control-request-method": "POST"}
    for path in ("/v1/chat/completions", "/infill", "/v1/edits"):
        assert client.options(path, headers=asked).status_code == 200

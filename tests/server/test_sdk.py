"""The official OpenAI client, unchanged."""

from __future__ import annotations

from collections.abc import Iterator

import openai
import pytest

from tests.server.tiny_service import Running

MESSAGES = [{"role": "user", "content": "say add"}]


@pytest.fixture(scope="module")
def sdk(service: Running) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{service.url}/v1", api_key="unused", max_retries=0) as client:
        yield client


def test_chat_streams_and_answers_alike(sdk: openai.OpenAI) -> None:
    options = {"model": "tiny", "messages": MESSAGES, "max_tokens": 20, "temperature": 0}
    whole = sdk.chat.completions.create(**options)
    stream = sdk.chat.completions.create(**options, stream=True, stream_options={"include_usage": True})
    chunks = list(stream)
    text = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
    assert text == whole.choices[0].message.content != ""
    counts = {"prompt_tokens", "completion_tokens", "total_tokens"}
    assert chunks[-1].usage.model_dump(include=counts) == whole.usage.model_dump(include=counts)
    assert chunks[-1].usage.prompt_tokens_details.cached_tokens == whole.usage.prompt_tokens - 1
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens


def test_prediction_usage_is_read(sdk: openai.OpenAI) -> None:
    reply = sdk.chat.completions.create(
        model="tiny", messages=MESSAGES, max_tokens=20, prediction={"type": "content", "content": "def add"}
    )
    details = reply.usage.completion_tokens_details
    assert details.accepted_prediction_tokens + details.rejected_prediction_tokens > 0


def test_logprobs_choices_and_stops_are_read(sdk: openai.OpenAI) -> None:
    chat = sdk.chat.completions.create(
        model="tiny", messages=MESSAGES, max_tokens=5, n=2, seed=1, logprobs=True, top_logprobs=2, stop=["@@"]
    )
    assert [choice.index for choice in chat.choices] == [0, 1]
    assert all(len(entry.top_logprobs) == 2 for entry in chat.choices[1].logprobs.content)
    text = sdk.completions.create(model="tiny", prompt=["def", "for"], max_tokens=5, seed=1, logprobs=2, n=2)
    assert [choice.index for choice in text.choices] == [0, 1, 2, 3]
    assert len(text.choices[3].logprobs.tokens) == len(text.choices[3].logprobs.text_offset) == 5


def test_vllm_extras_go_through_the_extra_body(sdk: openai.OpenAI) -> None:
    extra = {"top_k": 5, "min_p": 0.01, "repetition_penalty": 1.1, "ignore_eos": True, "speculation": False}
    reply = sdk.completions.create(model="tiny", prompt="def", max_tokens=7, extra_body=extra)
    assert reply.usage.completion_tokens == 7


def test_errors_become_the_clients_own_exceptions(sdk: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as missing:
        sdk.completions.create(model="gpt-4", prompt="x")
    assert missing.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError) as refused:
        sdk.completions.create(model="tiny", prompt=[5] * 3000)
    assert refused.value.code == "context_length_exceeded"
    with pytest.raises(openai.BadRequestError) as refused:
        sdk.chat.completions.create(model="tiny", messages=MESSAGES, temperature=-1)
    assert refused.value.param == "temperature"


def test_models_are_listed(sdk: openai.OpenAI) -> None:
    assert [model.id for model in sdk.models.list()] == ["tiny", "org/alias"]
    assert sdk.models.retrieve("org/alias").id == "org/alias"

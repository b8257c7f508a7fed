"""Answers of a given form, and calls of tools, as unchanged clients ask for and read them."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from enum import Enum
from typing import Any, Literal

import httpx
import openai
import pytest
from lookup_server.settings import Settings
from pydantic import BaseModel, Field
from tokenizers import AddedToken

from lookup_spec.model.load import LoadedModel
from lookup_spec.pipeline.engine import Engine
from tests.server.tiny_service import CHATML, Running, running, tiny_model

CHAT = "/v1/chat/completions"
TOOLS_FIRST = (
    "{% if tools %}{{ '<|im_start|>system\\nCall with <tool_call>.' }}{% for tool in tools %}"
    "{{ tool | tojson }}{% endfor %}{{ '<|im_end|>\\n' }}{% endif %}"
)
WITH_CALLS = CHATML.replace(
    "m['content'] +",
    "m['content'] }}{% for c in m.tool_calls or [] %}{{ '<tool_call>' + (c.function | tojson) + '</tool_call>' }}"
    "{% endfor %}{{",
)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Part(BaseModel, extra="forbid"):
    colour: Colour
    count: int = Field(ge=0, le=99)


class Thing(BaseModel, extra="forbid"):
    name: str = Field(max_length=4, pattern="^[a-z]+$")
    parts: list[Part] = Field(max_length=1)
    kind: Literal["new", "old"] | None


CITY = {
    "type": "object",
    "properties": {"city": {"enum": ["Oslo", "Rome"]}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": "weather", "description": "Now.", "parameters": CITY}},
    {"type": "function", "function": {"name": "stop"}},
]
BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "say add"}], "max_tokens": 600, "temperature": 0}


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    one = copy.copy(tiny_model())
    one.tokenizer.chat_template = TOOLS_FIRST + WITH_CALLS
    one.tokenizer.backend_tokenizer.add_tokens([AddedToken("<tool_call>", normalized=False)])
    one.model.resize_token_embeddings(len(one.tokenizer))
    return one


@pytest.fixture(scope="module")
def calling(loaded: LoadedModel) -> Iterator[Running]:
    with running(Engine(loaded), Settings(served_names=("tiny",))) as one:
        yield one


@pytest.fixture(scope="module")
def http(calling: Running) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=calling.url, timeout=120, trust_env=False) as one:
        yield one


@pytest.fixture(scope="module")
def sdk(calling: Running) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{calling.url}/v1", api_key="unused", max_retries=0) as client:
        yield client


def post(http: httpx.Client, body: dict[str, Any], path: str = CHAT) -> Any:
    response = http.post(path, json=body)
    assert response.status_code == 200, response.text
    return response.json()


def streamed(http: httpx.Client, body: dict[str, Any]) -> tuple[list[dict[str, Any]], list[str | None]]:
    """Each choice's message, put together the way clients do it, and why it ended."""
    response = http.post(CHAT, json={**body, "stream": True})
    assert response.status_code == 200, response.text
    messages: list[dict[str, Any]] = [{"content": None} for _ in range(body.get("n", 1))]
    reasons: list[str | None] = [None] * len(messages)
    for line in response.text.removesuffix("data: [DONE]\n\n").split("\n\n")[:-1]:
        [choice] = json.loads(line.removeprefix("data: "))["choices"]
        message, delta = messages[choice["index"]], choice["delta"]
        if delta.get("content"):
            message["content"] = (message["content"] or "") + delta["content"]
        for part in delta.get("tool_calls", []):
            calls = message.setdefault("tool_calls", [])
            if part["index"] == len(calls):
                calls.append({**part["function"], "id": part["id"], "type": part["type"]})
            else:
                assert set(part) == {"index", "function"}
                calls[part["index"]]["arguments"] += part["function"]["arguments"]
        reasons[choice["index"]] = choice["finish_reason"] or reasons[choice["index"]]
    return messages, reasons


def calls_of(message: dict[str, Any]) -> list[tuple[str, str]]:
    calls = [call.get("function", call) for call in message.get("tool_calls", [])]
    return [(call["name"], call["arguments"]) for call in calls]


def test_an_answer_keeps_to_a_schema(http: httpx.Client) -> None:
    """Greedy or sampled, streamed or whole, drafted or not, each choice is JSON of the schema, and the same."""
    schema = {"name": "thing", "schema": Thing.model_json_schema()}
    for settings in ({}, {"temperature": 1, "seed": 3, "n": 2}, {"logprobs": True}):
        body = {**BODY, **settings, "response_format": {"type": "json_schema", "json_schema": schema}}
        whole = post(http, body)
        told = [choice["message"]["content"] for choice in whole["choices"]]
        for text in told:
            Thing.model_validate_json(text)
        messages, reasons = streamed(http, body)
        assert [message["content"] for message in messages] == told
        assert {*reasons, *(choice["finish_reason"] for choice in whole["choices"])} == {"stop"}
        plain = post(http, {**body, "speculation": False})
        assert [choice["message"]["content"] for choice in plain["choices"]] == told


def test_what_is_forced_is_proposed(http: httpx.Client) -> None:
    """A form that leaves little to choose takes few passes."""
    schema = {"name": "t", "schema": {"enum": ["one long text of many words", "another text of even more words"]}}
    body = {**BODY, "response_format": {"type": "json_schema", "json_schema": schema}, "stream": True}
    told = http.post(CHAT, json={**body, "stream_options": {"include_speculation": True}}).text
    assert '"source":"grammar"' in told
    stats = json.loads(told.split("\n\n")[-3].removeprefix("data: "))["choices"][0]["speculation"]["stats"]
    assert stats["tokens_per_forward"] > 2


def test_an_answer_is_any_json_object(http: httpx.Client) -> None:
    """Cut off for want of room, it says so."""
    body = {**BODY, "response_format": {"type": "json_object"}, "max_tokens": 1}
    [choice] = post(http, body)["choices"]
    assert choice["finish_reason"] == "length"
    assert choice["message"]["content"].startswith("{")


def test_the_sdk_parses_into_models(sdk: openai.OpenAI) -> None:
    """``parse`` takes a pydantic model for the answer, and for a tool's arguments."""
    options: dict[str, Any] = {**BODY, "model": "tiny"}
    told = sdk.chat.completions.parse(**options, response_format=Thing).choices[0].message
    assert isinstance(told.parsed, Thing)
    tools = [openai.pydantic_function_tool(Thing, name="thing")]
    told = sdk.chat.completions.parse(**options, tools=tools, tool_choice="required").choices[0].message
    assert told.tool_calls is not None
    assert all(isinstance(call.function.parsed_arguments, Thing) for call in told.tool_calls)


@pytest.mark.parametrize("settings", [{}, {"temperature": 1, "seed": 11, "n": 2}])
@pytest.mark.parametrize(
    ("choice", "names"),
    [("required", {"weather", "stop"}), ({"type": "function", "function": {"name": "weather"}}, {"weather"})],
)
def test_tools_are_called_where_they_have_to_be(
    http: httpx.Client, choice: Any, names: set[str], settings: dict[str, Any]
) -> None:
    """Every call is of a function that may be called, its arguments are right, and a stream tells the same."""
    body = {**BODY, **settings, "tools": TOOLS, "tool_choice": choice, "parallel_tool_calls": False}
    whole = post(http, body)
    messages, reasons = streamed(http, body)
    for told, message, reason in zip(whole["choices"], messages, reasons, strict=True):
        assert told["message"]["content"] is None
        assert message["content"] is None
        assert told["finish_reason"] == reason == "tool_calls"
        [(name, arguments)] = calls_of(told["message"])
        assert name in names
        assert (name == "stop") == (json.loads(arguments) == {})
        assert [(name, arguments)] == calls_of(message)
        assert calls_of(post(http, {**body, "speculation": False})["choices"][0]["message"]) == calls_of(
            whole["choices"][0]["message"]
        )
        for call in (*told["message"]["tool_calls"], *message["tool_calls"]):
            assert call["type"] == "function"
            assert call["id"].startswith("call_")


def test_an_answer_may_be_text_or_calls(http: httpx.Client, loaded: LoadedModel) -> None:
    """Where the choice is the model's, text is text, and what begins like a call is one."""
    body = {**BODY, "tools": TOOLS, "max_tokens": 20}
    [text] = post(http, body)["choices"]
    assert text["message"]["content"]
    assert "tool_calls" not in text["message"]
    assert text["finish_reason"] in ("stop", "length")
    begin = {str(loaded.tokenizer.convert_tokens_to_ids("<tool_call>")): 100}
    [called] = post(http, {**body, "logit_bias": begin, "max_tokens": 300})["choices"]
    assert called["message"]["content"] is None
    assert called["finish_reason"] == "tool_calls"
    assert {name for name, _ in calls_of(called["message"])} <= {"weather", "stop"}
    messages, _ = streamed(http, {**body, "logit_bias": begin, "max_tokens": 300})
    assert calls_of(messages[0]) == calls_of(called["message"])
    [cut] = post(http, {**body, "logit_bias": begin, "max_tokens": 12})["choices"]
    assert cut["finish_reason"] == "length"
    [never] = post(http, {**body, "tool_choice": "none"})["choices"]
    assert "tool_calls" not in never["message"]


def test_a_conversation_goes_on_behind_calls(sdk: openai.OpenAI, http: httpx.Client) -> None:
    """The assistant's message can be sent back as it came, with the results of its calls."""
    options: dict[str, Any] = {**BODY, "model": "tiny", "tools": TOOLS}
    called = sdk.chat.completions.create(**options, tool_choice="required").choices[0].message
    assert called.tool_calls
    results = [{"role": "tool", "tool_call_id": call.id, "content": "warm"} for call in called.tool_calls]
    sent = [*BODY["messages"], called, *results]
    after = sdk.chat.completions.create(**{**options, "messages": sent, "max_tokens": 20})
    assert after.choices[0].finish_reason in ("stop", "length", "tool_calls")
    sent = [*BODY["messages"], called.model_dump(exclude_none=True), *results]
    prompt = post(http, {"messages": sent}, "/apply-template")["prompt"]
    name, arguments = called.tool_calls[0].function.name, json.loads(called.tool_calls[0].function.arguments)
    assert f'"name": "{name}", "arguments": {json.dumps(arguments)}' in prompt
    assert "<|im_start|>tool\nwarm" in prompt


def test_llamacpp_takes_schemas_and_grammars(http: httpx.Client) -> None:
    """``json_schema`` and ``grammar`` hold an answer of ``/completion`` to a form; not both."""
    body = {"prompt": "def", "n_predict": 600}
    told = post(http, {**body, "json_schema": CITY}, "/completion")
    assert json.loads(told["content"])["city"] in ("Oslo", "Rome")
    assert told["stop_type"] == "eos"
    assert post(http, {**body, "grammar": 'root ::= "yes" | "no" [!?]'}, "/completion")["content"] in (
        "yes",
        "no!",
        "no?",
    )
    for wrong, param in (
        ({"json_schema": {"type": "thing"}}, "json_schema"),
        ({"grammar": "root ::= x"}, "grammar"),
        ({"grammar": 'root ::= "x"', "json_schema": {}}, "grammar"),
    ):
        response = http.post("/completion", json={**body, **wrong})
        assert (response.status_code, response.json()["error"]["param"]) == (400, param)

"""Answers of a given form by a real model: right, useful, and the same with and without speculation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from jsonschema import validate

from lookup_spec.model.embedded import EMBEDDED, LIGHT, is_installed
from tests.server.test_serve import command

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not is_installed(EMBEDDED[LIGHT]), reason="the light embedded model is not installed"),
]

CODE = "def area(width, height):\n    return width * height\n\n\ndef half(number):\n    return number / 2\n"
FUNCTIONS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "functions": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "parameters": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["name", "parameters"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["functions"],
    "additionalProperties": False,
}
WEATHER: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "unit": {"enum": ["celsius", "fahrenheit"]}},
    "required": ["city", "unit"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def sdk() -> Iterator[openai.OpenAI]:
    with (
        command("--model", LIGHT, "--port", "0", "--dtype", "float32") as (_, url),
        openai.OpenAI(base_url=f"{url}v1", api_key="x", max_retries=0, timeout=300) as client,
    ):
        yield client


def both(sdk: openai.OpenAI, **body: Any) -> Any:
    """The answer with speculation, which is that without."""
    asked: dict[str, Any] = {"model": "", "temperature": 0, "max_tokens": 200, **body}
    fast, plain = (
        sdk.chat.completions.create(**asked, extra_body={"speculation": speculation}).choices[0]
        for speculation in (True, False)
    )
    assert fast.finish_reason == plain.finish_reason
    assert fast.message.content == plain.message.content
    assert [call.function for call in fast.message.tool_calls or ()] == [
        call.function for call in plain.message.tool_calls or ()
    ]
    return fast


def test_an_answer_keeps_to_its_schema_and_does_not_depend_on_speculation(sdk: openai.OpenAI) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "functions", "schema": FUNCTIONS, "strict": True}}
    asked = f"List the functions in this file with their parameters, as JSON.\n\n```python\n{CODE}```"
    choice = both(sdk, messages=[{"role": "user", "content": asked}], response_format=form)
    told = json.loads(choice.message.content)
    validate(told, FUNCTIONS)
    assert choice.finish_reason == "stop"
    assert {"name": "area", "parameters": ["width", "height"]} in told["functions"]


def test_a_tool_is_called_with_what_was_asked_about(sdk: openai.OpenAI) -> None:
    tool = {"name": "weather", "description": "The weather in a city now.", "parameters": WEATHER}
    choice = both(
        sdk,
        messages=[{"role": "user", "content": "How warm is it in Oslo, in celsius?"}],
        tools=[{"type": "function", "function": tool}],
        tool_choice="required",
    )
    [call] = choice.message.tool_calls
    assert (choice.finish_reason, call.function.name) == ("tool_calls", "weather")
    assert json.loads(call.function.arguments) == {"city": "Oslo", "unit": "celsius"}

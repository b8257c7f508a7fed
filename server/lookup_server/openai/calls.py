"""Calls of tools: from what a chat's body asks for to a grammar, and from the answer's text to what clients read."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lookup_server.errors import bad_request
from lookup_server.openai.requests import ChatRequest
from lookup_server.openai.tokens import Json
from lookup_server.openai.tools import NamedTool
from lookup_spec.grammar import Grammar
from lookup_spec.pipeline.engine import Engine
from lookup_spec.text.tool_calls import CallBegun, Event, Said, ToolCallReader
from lookup_spec.text.tools import Tool, ToolForm, calls_grammar


@dataclass(frozen=True, slots=True)
class Calling:
    """How an answer may call tools.

    Attributes:
        form: how the model writes calls.
        tools: all that it is told of.
        grammar: what the answer may be.
        text: it may be text without calls.
    """

    form: ToolForm
    tools: Sequence[Tool]
    grammar: Grammar
    text: bool


def calling_of(body: ChatRequest, engine: Engine) -> Calling | None:
    """How a chat's answer may call tools; None if it may not.

    Raises:
        ApiError: the model cannot call tools.
        InvalidRequestError: a tool's schema cannot be enforced.
    """
    if not body.tools or not body.calls_tools:
        return None
    form = engine.template.tool_form
    if form is None:
        raise bad_request(
            "The field tools is wrong: this model's chat template has no form of calling tools that is known here.",
            "tools",
        )
    tools = [field.tool(number) for number, field in enumerate(body.tools)]
    for tool in tools:
        engine.check(tool.grammar)
    choice = body.tool_choice or "auto"
    named = isinstance(choice, NamedTool)
    allowed = [tool for tool in tools if not isinstance(choice, NamedTool) or tool.name == choice.function.name]
    several = not named and body.parallel_tool_calls is not False
    text = choice == "auto"
    return Calling(form, tools, calls_grammar(form, allowed, text=text, several=several), text)


class CallingAnswer:
    """One answer that may call tools, as it grows."""

    def __init__(self, calling: Calling) -> None:
        self._reader = ToolCallReader(calling.form, text=calling.text)
        self._id_length = calling.form.id_length
        self._texts: list[str] = []
        self._calls: list[dict[str, Any]] = []

    @property
    def called(self) -> bool:
        """Whether a tool was called."""
        return bool(self._calls)

    def deltas(self, text: str, *, last: bool) -> list[Json]:
        """What more of the answer adds to a stream."""
        events = self._reader.push(text)
        if last:
            events += self._reader.flush()
        return [{"delta": self._delta(event)} for event in events]

    def message(self) -> Json:
        """The whole answer, once all was told."""
        if not self._calls:
            return {"content": "".join(self._texts)}
        return {"content": "".join(self._texts) or None, "tool_calls": self._calls}

    def _delta(self, event: Event) -> Json:
        if isinstance(event, Said):
            self._texts.append(event.text)
            return {"content": event.text}
        if isinstance(event, CallBegun):
            function = {"name": event.name, "arguments": ""}
            self._calls.append({"id": self._new_id(), "type": "function", "function": function})
            return self._call({**self._calls[-1], "function": dict(function)})
        self._calls[-1]["function"]["arguments"] += event.text
        return self._call({"function": {"arguments": event.text}})

    def _call(self, told: Json) -> Json:
        return {"tool_calls": [{"index": len(self._calls) - 1, **told}]}

    def _new_id(self) -> str:
        unique = uuid.uuid4().hex
        return unique[: self._id_length] if self._id_length else f"call_{unique[:24]}"

"""What a chat's body says about the form of its answer: ``response_format``, ``tools`` and what goes with them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue

from lookup_server.body import Body
from lookup_spec.grammar import Grammar
from lookup_spec.text.tools import Tool

MAX_TOOLS = 128

Name = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]


class JsonSchema(Body):
    """A schema for the answer.

    Attributes:
        strict: what cannot be enforced is refused; else it is left aside, and the rest is enforced all the same.
    """

    name: Name
    description: str | None = None
    schema_: Annotated[dict[str, JsonValue] | None, Field(alias="schema")] = None
    strict: bool | None = None


class ResponseFormat(Body):
    """The form of the answer."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None

    @property
    def grammar(self) -> Grammar | None:
        """The same as a grammar; None for plain text."""
        if self.type == "json_object":
            return Grammar.json_object()
        if self.json_schema is None:
            return None
        given = self.json_schema
        return Grammar.json_schema(
            given.schema_ or {}, lenient=not given.strict, param="response_format.json_schema.schema"
        )


class Function(Body):
    """A function that may be called."""

    name: Name
    description: str | None = None
    parameters: dict[str, JsonValue] | None = None
    strict: bool | None = None


class ToolField(Body):
    """A tool; there are only functions."""

    type: Literal["function"]
    function: Function

    def tool(self, number: int) -> Tool:
        """The function, as the ``number``-th of the request."""
        given = self.function
        parameters = given.parameters or {"type": "object", "properties": {}, "additionalProperties": False}
        param = f"tools[{number}].function.parameters"
        return Tool(given.name, parameters, given.description or "", bool(given.strict), param)


class FunctionName(Body):
    """A function's name."""

    name: str


class NamedTool(Body):
    """A choice of one function, which has to be called."""

    type: Literal["function"]
    function: FunctionName


class CalledFunction(Body):
    """A call that was made."""

    name: str
    arguments: str


class ToolCall(Body):
    """A call in a message of the assistant."""

    id: str
    type: Literal["function"]
    function: CalledFunction

    def plain(self) -> dict[str, Any]:
        """The call as templates take it: with its arguments as an object."""
        function = {"name": self.function.name, "arguments": self.arguments}
        return {"id": self.id, "type": self.type, "function": function}

    @property
    def arguments(self) -> Mapping[str, Any] | None:
        """The arguments; None if they are no JSON object."""
        try:
            found = json.loads(self.function.arguments or "{}")
        except ValueError:
            return None
        return found if isinstance(found, dict) else None

"""Functions that a model may call: how its template has it write a call, and the grammar that makes it do so."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lookup_spec.grammar import Grammar


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that may be called.

    Attributes:
        name: letters, digits, underscores and dashes.
        parameters: JSON schema of its arguments, an object.
        description: what it does; empty if that is not told.
        strict: keywords of the schema that cannot be enforced are refused; else they are left aside.
        param: the field of the request that the schema came from, for messages.
    """

    name: str
    parameters: Mapping[str, Any]
    description: str = ""
    strict: bool = False
    param: str = "tools"

    def told(self) -> dict[str, Any]:
        """The function in the form that templates show to models."""
        described = {"description": self.description} if self.description else {}
        return {"type": "function", "function": {"name": self.name, **described, "parameters": dict(self.parameters)}}

    @property
    def grammar(self) -> Grammar:
        """The form of its arguments."""
        return Grammar.json_schema({**self.parameters, "type": "object"}, lenient=not self.strict, param=self.param)


@dataclass(frozen=True, slots=True)
class ToolForm:
    """How one family of models writes calls, letter by letter.

    Attributes:
        opening: before the first call.
        begin: before a call's name.
        middle: between its name and its arguments.
        end: behind its arguments.
        between: between two calls; None if a model makes one only.
        closing: behind the last call.
        trigger: where text is allowed before the first call, what ends it: the beginning of ``opening`` and ``begin``.
            None if an answer is either text or calls from its first letter.
        token: a control token without text that stands before all this.
        id_length: of the ids by which templates tell calls apart; 0 for any.
    """

    opening: str
    begin: str
    middle: str
    end: str
    between: str | None = None
    closing: str = ""
    trigger: str | None = None
    token: int | None = None
    id_length: int = 0


def tool_form(template: str, control_token: Callable[[str], int | None]) -> ToolForm | None:
    """The form that a chat template asks for; None if it knows no tools, or a form that is not known here.

    Args:
        template: the template's source.
        control_token: gives a control token's id by its spelling.
    """
    if "tools" not in template:
        return None
    if "<tool_call>" in template and "<function=" not in template and "<arg_key>" not in template:
        return ToolForm(
            opening="",
            begin='<tool_call>\n{"name": "',
            middle='", "arguments": ',
            end="}\n</tool_call>",
            between="\n",
            trigger="<tool_call>",
        )
    if "[TOOL_CALLS]" in template and "[ARGS]" not in template:
        return ToolForm(
            opening="[",
            begin='{"name": "',
            middle='", "arguments": ',
            end="}",
            between=", ",
            closing="]",
            token=control_token("[TOOL_CALLS]"),
            id_length=9,
        )
    if '"parameters": ' in template:
        return ToolForm(opening="", begin='{"name": "', middle='", "parameters": ', end="}")
    return None


def calls_grammar(form: ToolForm, tools: Sequence[Tool], *, text: bool, several: bool) -> Grammar:
    """What an answer may be.

    Args:
        form: how calls are written.
        tools: the functions that may be called, at least one.
        text: an answer without calls is allowed, and in some forms text before them.
        several: more than one call is allowed.
    """
    bodies = " | ".join(f"call_{number}" for number in range(len(tools)))
    opening = form.opening + form.begin
    first = f"<[{form.token}]> {_literal(opening)}" if form.token is not None else _literal(opening)
    rules = []
    if text and form.trigger is not None:
        rules += [f"first[lazy]: /(.|\\n)*{form.trigger}/", "TEXT: /(.|\\n)+/"]
        first = f"first {_literal(opening.removeprefix(form.trigger))}"
    elif text:
        # Whatever begins like a call is one, so that it need not be told from text later.
        rules += [f"TEXT: /[^\\{opening[0]}](.|\\n)*/"]
    more = "" if form.between is None or not several else f" ({_literal(form.between + form.begin)} ({bodies}))*"
    closing = f" {_literal(form.closing)}" if form.closing else ""
    rules += [
        f"start: {'| TEXT | ' if text else ''}calls",
        f"calls: {first} ({bodies}){more}{closing}",
        *(f"call_{number}: {_call(form, tool)}" for number, tool in enumerate(tools)),
    ]
    return Grammar.lark("\n".join(["%llguidance {}", *rules]), param="tools")


def _call(form: ToolForm, tool: Tool) -> str:
    # Templates write calls that were made with these separators, so models are used to them, and all else is forced.
    style = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": ", "lenient": not tool.strict}
    schema = {**tool.parameters, "type": "object", "x-guidance": style}
    return f"{_literal(tool.name + form.middle)} %json {json.dumps(schema)} {_literal(form.end)}"


def _literal(text: str) -> str:
    return json.dumps(text)

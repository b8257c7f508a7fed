"""What form an answer must have: a value that everyone speaks, and what a matcher of it can tell."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Kind = Literal["json_schema", "regex", "lark", "gbnf"]


@dataclass(frozen=True, slots=True)
class Grammar:
    """The form that an answer must have.

    Attributes:
        kind: in what language ``text`` is written: JSON Schema, a regular expression (of Rust's regex crate), Lark
            in llguidance's dialect, or llama.cpp's GBNF.
        text: the grammar itself.
        lenient: keywords of JSON Schema that cannot be enforced are left aside; otherwise they are refused by name.
        param: the field of the request that it came from, for messages.
    """

    kind: Kind
    text: str
    lenient: bool = False
    param: str = "grammar"

    @classmethod
    def json_schema(
        cls, schema: Mapping[str, Any] | bool, *, lenient: bool = False, param: str = "json_schema"
    ) -> Grammar:
        """JSON that a schema accepts, its properties in the schema's order."""
        return cls("json_schema", json.dumps(schema, ensure_ascii=False), lenient, param)

    @classmethod
    def json_object(cls, *, param: str = "response_format") -> Grammar:
        """Any JSON object."""
        return cls.json_schema({"type": "object"}, param=param)

    @classmethod
    def regex(cls, pattern: str, *, param: str = "regex") -> Grammar:
        """Text that matches a regular expression from end to end."""
        return cls("regex", pattern, param=param)

    @classmethod
    def lark(cls, text: str, *, param: str = "grammar") -> Grammar:
        """Text that a Lark grammar derives from ``start``."""
        return cls("lark", text, param=param)

    @classmethod
    def gbnf(cls, text: str, *, param: str = "grammar") -> Grammar:
        """Text that a GBNF grammar derives from ``root``."""
        return cls("gbnf", text, param=param)


class Matcher(Protocol):
    """Where one answer stands in its grammar. It moves forward only; forks may go elsewhere and come back.

    Attributes:
        ends: tokens that end an answer: allowed where it may end, and where the grammar has their text.
    """

    @property
    def ends(self) -> frozenset[int]: ...

    @property
    def may_end(self) -> bool:
        """Whether the answer may end here."""

    @property
    def complete(self) -> bool:
        """Whether nothing but an end may follow."""

    def allows(self, token: int) -> bool:
        """Whether a token may come next."""

    def mask(self) -> bytes:
        """Which tokens fit next: one bit a token, the lowest bit of the first byte for token 0. Where the answer may
        end, the ends may come besides.

        Raises:
            GrammarError: the grammar is too complex to tell.
        """

    def push(self, tokens: Sequence[int]) -> int:
        """Takes in tokens, none of them an end, up to the first that does not fit; returns how many.

        An unusual spelling of what is forced is taken in, too.
        """

    def back(self, count: int) -> None:
        """Takes back the tokens pushed last."""

    def fork(self) -> Matcher:
        """Another one at the same place."""

    def forced(self) -> Sequence[int]:
        """Tokens that must follow: where a grammar leaves only one text, its usual spelling is the only one allowed."""

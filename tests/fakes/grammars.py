"""Schemas beside regular expressions of the same language, and a matcher that reads the whole text each time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

import regex
from hypothesis import strategies as st

from fakes.words import Words
from lookup_spec.grammar import Matcher

# JSON in pieces that overlap, so that the same text can be spelled in many ways. No line breaks: where one may stand
# is not part of the comparison.
PIECES = [
    *'{}[]":, -01ab',
    *("tru", "true", "e", "false", "null", "nul", "l", "x"),
    *('{"', '":', '": ', ", ", '", "', '"}', "]}", "}]", '"a"', "ab", "10", " [", "[]", "{}", "  "),
]
_SPACE = " ?"
_STRING = '"[^"]*"'


class Language(NamedTuple):
    """A JSON schema and a regular expression that say the same."""

    schema: dict[str, Any]
    pattern: str


def _object(members: list[tuple[str, Language, bool]]) -> Language:
    ways = []
    for chosen in product(*((True,) if needed else (True, False) for _, _, needed in members)):
        told = [
            f'"{name}"{_SPACE}:{_SPACE}{value.pattern}'
            for (name, value, _), taken in zip(members, chosen, strict=True)
            if taken
        ]
        ways.append(f"{_SPACE},{_SPACE}".join(told) + (_SPACE if told else ""))
    schema = {
        "type": "object",
        "properties": {name: value.schema for name, value, _ in members},
        "required": [name for name, _, needed in members if needed],
        "additionalProperties": False,
    }
    either = "|".join(ways)
    return Language(schema, rf"\{{{_SPACE}(?:{either})\}}")


def _array(item: Language, most: int) -> Language:
    schema = {"type": "array", "items": item.schema, "maxItems": most}
    more = f"(?:{_SPACE},{_SPACE}{item.pattern}){{0,{most - 1}}}"
    return Language(schema, rf"\[{_SPACE}(?:{item.pattern}{more}{_SPACE})?\]")


def _either(ways: list[Language]) -> Language:
    either = "|".join(way.pattern for way in ways)
    return Language({"anyOf": [way.schema for way in ways]}, f"(?:{either})")


def _words(words: list[str]) -> Language:
    quoted = "|".join(f'"{word}"' for word in words)
    return Language({"enum": words}, f"(?:{quoted})")


_LEAVES = st.one_of(
    st.just(Language({"type": "boolean"}, "(?:true|false)")),
    st.just(Language({"type": "null"}, "null")),
    st.just(Language({"type": "integer"}, "-?(?:0|[1-9][0-9]*)")),
    st.just(Language({"type": "string"}, _STRING)),
    st.lists(st.sampled_from(["a", "ab", "b", "aa", ""]), min_size=1, max_size=3, unique=True).map(_words),
)


def _nested(inner: st.SearchStrategy[Language]) -> st.SearchStrategy[Language]:
    member = st.tuples(st.sampled_from(["a", "ab", "b", "x"]), inner, st.booleans())
    return st.one_of(
        st.lists(member, max_size=3, unique_by=lambda member: member[0]).map(_object),
        st.builds(_array, inner, st.integers(1, 3)),
        st.lists(inner, min_size=1, max_size=2).map(_either),
    )


LANGUAGES = st.recursive(_LEAVES, _nested, max_leaves=6)


class SlowMatcher:
    """Tells what may come next by reading the whole text with each word put behind it.

    Args:
        words: the tokens.
        pattern: of the whole text.
    """

    def __init__(self, words: Words, pattern: str) -> None:
        self._words = words
        self._pattern = pattern
        self._text = ""

    def _fits(self, text: str, *, partly: bool) -> bool:
        return regex.fullmatch(self._pattern, text, partial=partly) is not None

    @property
    def may_end(self) -> bool:
        return self._fits(self._text, partly=False)

    @property
    def complete(self) -> bool:
        return self.may_end and not any(self.mask())

    def only(self, text: str) -> bool:
        """Whether no other text may follow."""
        letters = {letter for piece in PIECES for letter in piece}
        for end, letter in enumerate(text):
            before = self._text + text[:end]
            if self._fits(before, partly=False):
                return False
            if [other for other in letters if self._fits(before + other, partly=True)] != [letter]:
                return False
        return True

    def mask(self) -> bytes:
        pieces = [self._words.text([token]) for token in range(len(self._words))]
        return packed([bool(piece) and self._fits(self._text + piece, partly=True) for piece in pieces])

    def push(self, tokens: Sequence[int]) -> int:
        self._text += self._words.text(tokens)
        return len(tokens)


def packed(bits: Sequence[bool]) -> bytes:
    """Bits as bytes, the lowest first."""
    return bytes(sum(bit << n for n, bit in enumerate(bits[i : i + 8])) for i in range(0, len(bits), 8))


class RereadingMatcher:
    """A matcher that reads everything anew for every question."""

    def __init__(self, make: Callable[[], Matcher], tokens: Sequence[int] = ()) -> None:
        self._make = make
        self._tokens = list(tokens)
        self.ends = make().ends

    def _now(self) -> Matcher:
        matcher = self._make()
        for token in self._tokens:
            matcher.push([token])
        return matcher

    @property
    def may_end(self) -> bool:
        return self._now().may_end

    @property
    def complete(self) -> bool:
        return self._now().complete

    def allows(self, token: int) -> bool:
        bits = self.mask()
        if token in self.ends and self.may_end:
            return True
        return token // 8 < len(bits) and bool(bits[token // 8] >> token % 8 & 1)

    def mask(self) -> bytes:
        return self._now().mask()

    def push(self, tokens: Sequence[int]) -> int:
        count = self._now().push(tokens)
        self._tokens += tokens[:count]
        return count

    def back(self, count: int) -> None:
        del self._tokens[len(self._tokens) - count :]

    def fork(self) -> Matcher:
        return RereadingMatcher(self._make, self._tokens)

    def forced(self) -> Sequence[int]:
        return self._now().forced()

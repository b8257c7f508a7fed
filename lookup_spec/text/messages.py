"""Chat messages as plain values, and private letters that travel with them through a template.

A template is a program that may trim, test and move a message's text. To know afterwards where a passage
went, or that a control token was only spelled by the user, letters that occur nowhere else are put into the
text beforehand and taken out again behind the template.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from lookup_spec.errors import InvalidRequestError

Message = Mapping[str, Any]
Span = tuple[int, int]
_PRIVATE_USE = (range(0xE000, 0xF900), range(0xF0000, 0xFFFFE), range(0x100000, 0x10FFFE))


@dataclass(frozen=True, slots=True)
class Passage:
    """The letters ``start:end`` of the content of ``messages[message]``."""

    message: int
    start: int
    end: int


def passage_of(messages: Sequence[Message], text: str) -> Passage | None:
    """Where a text stands in the messages; the last place, if there are several."""
    for index in reversed(range(len(messages))):
        start = content_of(messages[index]).rfind(text)
        if text and start >= 0:
            return Passage(index, start, start + len(text))
    return None


def content_of(message: Message) -> str:
    """A message's content as one text; text parts are joined by line breaks, so that no two can form a word.

    Raises:
        InvalidRequestError: a part is not text.
    """
    content = message.get("content")
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        raise InvalidRequestError(
            f"A message's content is of type {type(content).__name__}; give a text.", param="messages"
        )
    for part in content:
        if not isinstance(part, Mapping) or not isinstance(part.get("text"), str):
            kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
            raise InvalidRequestError(
                f"A message holds a part of type {kind!r}; this model reads text only.", param="messages"
            )
    return "\n".join(part["text"] for part in content)


def role_of(message: Message) -> str:
    """A message's role.

    Raises:
        InvalidRequestError: it has none.
    """
    role = message.get("role")
    if not isinstance(role, str) or not role:
        raise InvalidRequestError(f"A message has the role {role!r}; give one like 'user'.", param="messages")
    return role


def unused_letters(text: str) -> Iterator[str]:
    """Private-use letters that do not stand in a text."""
    return (letter for letter in map(chr, chain(*_PRIVATE_USE)) if letter not in text)


def texts_of(value: Any) -> Iterator[str]:
    """All texts inside messages, at any depth, names of fields included: those of a tool's arguments are data, too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from chain.from_iterable(map(texts_of, chain(value, value.values())))
    elif isinstance(value, Sequence):
        yield from chain.from_iterable(map(texts_of, value))


def map_texts(function: Callable[[str], str], value: Any) -> Any:
    """The same value with every text in it, at any depth, replaced by what the function gives."""
    if isinstance(value, str):
        return function(value)
    if isinstance(value, Mapping):
        return {map_texts(function, key): map_texts(function, item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [map_texts(function, item) for item in value]
    return value


class Marks:
    """A private letter at each end of each passage, to find the passages again in the rendered prompt.

    Args:
        passages: counted in letters of the contents without guards.
        guard: the letter that stands in contents to break up control tokens.
        letters: unused letters, two for each passage.
    """

    def __init__(self, passages: Sequence[Passage], guard: str, letters: Iterator[str]) -> None:
        self._passages = passages
        self._guard = guard
        self._pairs = [(next(letters), next(letters)) for _ in passages]

    def put(self, content: str, message: int) -> str:
        """The content of one message with its marks."""
        places = [
            (position, letter)
            for passage, (first, last) in zip(self._passages, self._pairs, strict=True)
            if passage.message == message
            for position, letter in ((passage.end, last), (passage.start, first))
        ]
        if not places:
            return content
        guards = [n - k for k, n in enumerate(n for n, letter in enumerate(content) if letter == self._guard)]
        for position, letter in sorted(places, key=lambda place: place[0], reverse=True):
            here = position + bisect_right(guards, position)
            content = content[:here] + letter + content[here:]
        return content

    def take(self, rendered: str) -> tuple[str, tuple[Span | None, ...]]:
        """The rendered prompt without marks, and for each passage its stretch; None if it is not shown."""
        letters = list(chain.from_iterable(self._pairs))
        found = sorted((rendered.find(letter), letter) for letter in letters if letter in rendered)
        places = {letter: position - n for n, (position, letter) in enumerate(found)}
        plain = rendered.translate(dict.fromkeys(map(ord, letters)))
        shown = ((places.get(first), places.get(last)) for first, last in self._pairs)
        return plain, tuple(None if a is None or b is None else (a, b) for a, b in shown)

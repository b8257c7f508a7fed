"""Reads calls of functions out of an answer while it is being written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lookup_spec.text.tools import ToolForm


@dataclass(frozen=True, slots=True)
class Said:
    """Text that is no call."""

    text: str


@dataclass(frozen=True, slots=True)
class CallBegun:
    """A call whose function is known."""

    name: str


@dataclass(frozen=True, slots=True)
class ArgumentsGrown:
    """More of the latest call's arguments, a JSON object."""

    text: str


Event = Said | CallBegun | ArgumentsGrown


class ToolCallReader:
    """Splits an answer that keeps to :func:`lookup_spec.text.tools.calls_grammar`.

    What comes out, joined, does not depend on how the text was cut. White space between text and a call belongs to
    neither.

    Args:
        form: how calls are written.
        text: the answer may be, or begin with, text.
    """

    def __init__(self, form: ToolForm, *, text: bool) -> None:
        self._form = form
        self._held = ""
        self._ended = False
        self._events = self._read(text)

    def push(self, text: str) -> list[Event]:
        """What became certain with more of the answer."""
        self._held += text
        events: list[Event] = []
        while (event := next(self._events)) is not None:
            events.append(event)
        return events

    def flush(self) -> list[Event]:
        """The rest of an answer that has ended."""
        self._ended = True
        return self.push("")

    def _read(self, text: bool) -> Iterator[Event | None]:
        """All events; None whenever more of the answer is needed, for ever at its end."""
        form = self._form
        if text:
            yield from self._text()
        yield from self._drop(form.opening + form.begin)
        while True:
            while '"' not in self._held:
                yield None
            name, quote, rest = self._held.partition('"')
            self._held = quote + rest
            yield CallBegun(name)
            yield from self._drop(form.middle)
            yield from self._arguments()
            yield from self._drop(form.end + (form.between or form.closing) + form.begin)

    def _text(self) -> Iterator[Event | None]:
        """Text, up to a call."""
        trigger = self._form.trigger
        if trigger is None:
            while not self._held:
                yield None
            if self._held.startswith((self._form.opening + self._form.begin)[0]):
                return
            while True:
                said, self._held = self._held, ""
                if said:
                    yield Said(said)
                yield None
        while (place := self._held.find(trigger)) < 0:
            # What may become the trigger is held back, with the white space before it.
            begun = next(n for n in reversed(range(len(trigger))) if self._held.endswith(trigger[:n]))
            ready = self._held if self._ended else self._held[: len(self._held) - begun].rstrip()
            self._held = self._held[len(ready) :]
            if ready:
                yield Said(ready)
            yield None
        said, self._held = self._held[:place].rstrip(), self._held[place:]
        if said:
            yield Said(said)

    def _drop(self, known: str) -> Iterator[None]:
        """Passes over what the grammar says is there."""
        left = len(known)
        while left:
            taken = min(left, len(self._held))
            self._held = self._held[taken:]
            left -= taken
            if left:
                yield None

    def _arguments(self) -> Iterator[Event | None]:
        """One JSON object."""
        end = _ObjectEnd()
        done = False
        while not done:
            place = next((place for place, letter in enumerate(self._held, start=1) if end.push(letter)), None)
            done = place is not None
            grown, self._held = self._held[:place], self._held[len(self._held) if place is None else place :]
            if grown:
                yield ArgumentsGrown(grown)
            if not done:
                yield None


class _ObjectEnd:
    """Finds the end of a JSON object."""

    def __init__(self) -> None:
        self._depth = 0
        self._quoted = self._escaped = False

    def push(self, letter: str) -> bool:
        """Whether the next letter closes the object."""
        if self._escaped:
            self._escaped = False
        elif self._quoted:
            self._escaped, self._quoted = letter == "\\", letter != '"'
        elif letter == '"':
            self._quoted = True
        elif letter in "{}":
            self._depth += 1 if letter == "{" else -1
            return self._depth == 0
        return False

"""Stop strings in a stream: found wherever they complete, never shown, and nothing else withheld."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence


class StopScanner:
    """Passes text through until the first stop string completes.

    The text comes in pieces of any size; what comes out does not depend on how it was cut. Held back is only
    a tail that may still grow into a stop string. Of several stop strings the one that completes first wins;
    of those that complete at the same letter, the longest.

    An Aho-Corasick automaton (Aho and Corasick, 1975) reads each letter once: the depth of its state is the
    length of the longest tail that begins a stop string, which is just what must be held back.

    Args:
        stops: the stop strings, none of them empty; without any, all text passes at once.

    Attributes:
        stop: the stop string that completed, or None. Text after it is ignored.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self.stop: str | None = None
        self._next: list[dict[str, int]] = [{}]
        self._fail = [0]
        self._depth = [0]
        self._match: list[str | None] = [None]
        for text in stops:
            self._add(text)
        self._link()
        self._state = 0
        self._held = ""

    def push(self, text: str) -> str:
        """The text that is now certain not to belong to a stop string."""
        if self.stop is not None:
            return ""
        if not self._next[0]:
            return text
        text = self._held + text
        state = self._state
        for end in range(len(self._held), len(text)):
            state = self._step(state, text[end])
            match = self._match[state]
            if match is not None:
                self.stop, self._held = match, ""
                return text[: end + 1 - len(match)]
        self._state = state
        certain = len(text) - self._depth[state]
        self._held = text[certain:]
        return text[:certain]

    def flush(self) -> str:
        """The text held back, when the answer ended otherwise than by a stop string."""
        held, self._held, self._state = self._held, "", 0
        return held

    def _step(self, state: int, letter: str) -> int:
        while letter not in self._next[state]:
            if state == 0:
                return 0
            state = self._fail[state]
        return self._next[state][letter]

    def _add(self, text: str) -> None:
        state = 0
        for letter in text:
            if letter not in self._next[state]:
                self._next[state][letter] = len(self._next)
                self._next.append({})
                self._fail.append(0)
                self._depth.append(self._depth[state] + 1)
                self._match.append(None)
            state = self._next[state][letter]
        self._match[state] = text

    def _link(self) -> None:
        """Gives each state its longest proper suffix that is a state, and the match that one ends with."""
        queue = deque(self._next[0].values())
        while queue:
            state = queue.popleft()
            for letter, child in self._next[state].items():
                self._fail[child] = self._step(self._fail[state], letter)
                queue.append(child)
            if self._match[state] is None:
                self._match[state] = self._match[self._fail[state]]

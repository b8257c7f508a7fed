"""One answer's text: token ids in, text out, ended by stop strings."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from lookup_spec.text.detokenize import Detokenizer, Vocabulary
from lookup_spec.text.stops import StopScanner


class TextOutput:
    """Turns an answer's tokens into the text that may be shown, and finds its end.

    What an engine's session asks of it:

    - ``push(token_id) -> bool``: True when this token completed a stop string; nothing is pushed after that.
    - ``take() -> str``: the text that became safe to show since the last ``take``.
    - ``finish() -> str``: the rest of the text, when the answer ended otherwise than by a stop string.
    - ``kept_tokens -> int``: how many of the pushed tokens, counted from the first, the text that is certain so
      far needs; those behind may yet belong to a stop string. A token that holds the last letters before a stop
      string and its first ones is kept.

    All texts taken and the finish, joined, are the whole answer. They hold neither a stop string that
    completed nor anything behind it, and no half character.

    Args:
        vocabulary: of the model's tokenizer.
        stops: strings that end the answer and are not part of it.
        continuing: the answer continues a text begun in the prompt (see :class:`Detokenizer`).
    """

    def __init__(self, vocabulary: Vocabulary, stops: Sequence[str] = (), *, continuing: bool = False) -> None:
        self._detokenizer = Detokenizer(vocabulary, continuing=continuing)
        self._scanner = StopScanner(stops)
        self._starts: list[int] | None = [] if stops else None
        self._decoded = 0
        self._delivered = 0
        self._ready: list[str] = []
        self._pushed = 0

    def push(self, token_id: int) -> bool:
        """Takes in the next token; True when it completed a stop string."""
        text = self._detokenizer.push(token_id)
        self._pushed += 1
        if self._starts is not None:
            self._starts.append(self._decoded)
            self._decoded += len(text)
        if text:
            self._pass(self._scanner.push(text))
        return self._scanner.stop is not None

    def take(self) -> str:
        """The text that became safe to show since the last call."""
        text = "".join(self._ready)
        self._ready.clear()
        return text

    def finish(self) -> str:
        """The rest of the text: what was not taken yet, and all that was held back."""
        self._pass(self._scanner.push(self._detokenizer.flush()))
        self._pass(self._scanner.flush())
        return self.take()

    @property
    def stop(self) -> str | None:
        """The stop string that ended the answer, if one did."""
        return self._scanner.stop

    @property
    def kept_tokens(self) -> int:
        """How many of the pushed tokens, from the first, the text that is certain so far needs."""
        return self._pushed if self._starts is None else bisect_left(self._starts, self._delivered)

    def _pass(self, text: str) -> None:
        if text:
            self._ready.append(text)
            self._delivered += len(text)

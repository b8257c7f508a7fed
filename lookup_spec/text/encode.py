"""Text to token ids: one start token at most, and text that is data never becomes a control token."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lookup_spec.errors import InvalidRequestError, ModelError
from lookup_spec.text.messages import Span, unused_letters

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_MARKER = re.compile(r"<[|｜].+[|｜]>", re.DOTALL)


class Encoder:
    """The ids of texts under one tokenizer; safe to use from several threads.

    Control tokens are the special ones, and those spelled like ``<|…|>`` even where a tokenizer's
    configuration forgot to call them special.

    Args:
        tokenizer: a fast tokenizer of the transformers library. Its padding and truncation are turned off.

    Raises:
        ModelError: the tokenizer is not a fast one.

    Attributes:
        start: ids that the tokenizer puts before a text: one start token as a rule, or none.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self._backend: Any = getattr(tokenizer, "backend_tokenizer", None)
        if self._backend is None:
            raise ModelError(
                f"The tokenizer {type(tokenizer).__name__} is not a fast one; convert it to tokenizer.json."
            )
        self._backend.no_padding()
        self._backend.no_truncation()
        self._backend.encode_special_tokens = False
        added = self._backend.get_added_tokens_decoder().items()
        control = {token.content: id for id, token in added if token.special or _MARKER.fullmatch(token.content)}
        self._control = {text: id for text, id in control.items() if len(text) > 1}
        self._lengths = sorted(set(map(len, self._control)))
        letters = {text[0] for text in self._control}
        self._first = re.compile(f"[{re.escape(''.join(letters))}]") if letters else None
        self.start = self._start_ids()

    def raw(self, text: str) -> tuple[int, ...]:
        """A prompt that is the caller's own from the first letter: control tokens in it are meant as such."""
        return self.with_start(self._encode(text).ids)

    def data(self, text: str) -> tuple[int, ...]:
        """A text as data, without start token: whatever it spells, no control token comes out."""
        guard = next(unused_letters(text))
        return self.guarded(self.guard(text, guard), guard)[0]

    def control_token(self, spelling: str) -> int | None:
        """The id of a control token; None if there is none of that spelling."""
        return self._control.get(spelling)

    def guard(self, text: str, guard: str) -> str:
        """The text with ``guard`` put into every spelling of a control token, behind its first letter."""
        if self._first is None:
            return text
        starts = (found.start() for found in self._first.finditer(text))
        cuts = [n + 1 for n in starts if any(text[n : n + size] in self._control for size in self._lengths)]
        return guard.join(text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True))

    def guarded(
        self, text: str, guard: str, spans: Sequence[Span | None] = ()
    ) -> tuple[tuple[int, ...], tuple[Span | None, ...]]:
        """Encodes a text, reading control tokens except the guarded ones, and drops the guards.

        The text goes through the tokenizer as a whole, so that everything it does at a text's start or next
        to a control token stays as usual; then the tokens that spell a guard are taken out.

        Args:
            text: may hold guards.
            guard: the letter used as one; stands in ``text`` for nothing else.
            spans: stretches of the text, in letters.

        Returns:
            The ids, without a start token of our own, and for each span the ids that lie in it.
        """
        encoding = self._encode(text)
        ids: list[int] = encoding.ids
        if guard not in text and not spans:
            return tuple(ids), ()
        offsets: list[Span] = encoding.offsets
        if guard in text:
            kept = _without(text, guard, offsets)
            ids, offsets = [ids[n] for n in kept], [offsets[n] for n in kept]
        starts, ends = [start for start, _ in offsets], [end for _, end in offsets]
        return tuple(ids), tuple(span and (bisect_left(starts, span[0]), bisect_right(ends, span[1])) for span in spans)

    def with_start(self, ids: Sequence[int]) -> tuple[int, ...]:
        """The ids behind exactly one start token, if the tokenizer uses one; as they are if not."""
        ids, size = tuple(ids), len(self.start)
        while size and ids[:size] == self.start:
            ids = ids[size:]
        return self.start + ids

    def _start_ids(self) -> tuple[int, ...]:
        whole = tuple(self._backend.encode("a", add_special_tokens=True).ids)
        plain = tuple(self._backend.encode("a", add_special_tokens=False).ids)
        begins = (n for n in range(len(whole)) if whole[n : n + len(plain)] == plain)
        return whole[: next(begins, 0)]

    def _encode(self, text: str) -> Any:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidRequestError(
                "The text holds half of a surrogate pair, which is no character; send well-formed Unicode."
            ) from error
        # A batch of one lets go of the interpreter lock meanwhile, so that a long text stalls no other thread.
        return self._backend.encode_batch([text], add_special_tokens=False)[0]


def _without(text: str, guard: str, offsets: Sequence[Span]) -> list[int]:
    """Indices of the tokens that do not spell a guard."""
    guards = {n for n, letter in enumerate(text) if letter == guard}
    spelling = {n for n, (start, end) in enumerate(offsets) if not guards.isdisjoint(range(start, end))}
    if any(offsets[n][1] - offsets[n][0] > 1 for n in spelling):
        raise InvalidRequestError(
            "The text spells a control token of this model, and its tokenizer cannot write that as plain "
            "letters; change the spelling."
        )
    return [n for n in range(len(offsets)) if n not in spelling]

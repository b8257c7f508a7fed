"""What a proposer is told about a request before the first token: ids, and where the likely answer stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

SegmentKind = Literal["message", "document", "base", "prediction", "answer"]

Work = Literal["edit", "fill", "free"]
"""What an answer is expected to do: follow a text, go between texts, or neither."""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch ``ids[start:end]`` of the prompt and what it is.

    ``"base"`` is the text being edited; the answer is expected to follow it closely.
    """

    start: int
    end: int
    kind: SegmentKind


@dataclass(frozen=True, slots=True)
class Reference:
    """Tokens that do not stand in the prompt, yet the answer may copy from: a prediction, another file.

    A ``"prediction"`` is the whole answer as it is expected if nothing changes, with whatever stands around
    the text in it (an opening fence, a closing one, the end token), tokenized as an answer. The answer is
    followed along it.

    Attributes:
        ids: the tokens.
        kind: what they are.
        opening: how many of a prediction's tokens stand before the text itself. An answer may begin with these
            or leave them out.
    """

    ids: tuple[int, ...]
    kind: SegmentKind
    opening: int = 0


@dataclass(frozen=True, slots=True)
class Prompt:
    """Token ids of a prompt with its known segments.

    Attributes:
        ids: the whole prompt, at least one token.
        spans: known segments in ascending, disjoint order; text outside them is a plain message.
        references: further token sequences to look things up in.
    """

    ids: tuple[int, ...]
    spans: tuple[Span, ...] = ()
    references: tuple[Reference, ...] = ()

    @property
    def work(self) -> Work:
        """What the answer is expected to do, by the kinds of what is known."""
        kinds = {span.kind for span in self.spans} | {reference.kind for reference in self.references}
        if kinds & {"base", "prediction"}:
            return "edit"
        return "fill" if "document" in kinds else "free"

    @classmethod
    def plain(cls, ids: Sequence[int]) -> Prompt:
        """A prompt about which nothing is known."""
        return cls(tuple(ids))

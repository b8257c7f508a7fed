"""What a request cost and what speculation brought, as plain numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class SourceStats:
    """Drafted and accepted tokens of one source of proposals."""

    drafted: int = 0
    accepted: int = 0


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts and times of one request.

    Attributes:
        prompt_tokens: length of the prompt.
        cached_tokens: as many of them were not computed, because their keys and values were there.
        completion_tokens: tokens delivered.
        forward_passes: forwards that chose at least one token; prefill chunks are not counted.
        drafts: those of them that checked drafted tokens.
        prefill_seconds: from the start of the work to the first chosen token.
        decode_seconds: from the first chosen token to the last.
        decode_tokens: tokens delivered in that time; those of the first forward are not among them.
        proposed: drafted nodes that were there to be checked.
        drafted: those of them that were checked, because they were worth it.
        expected: as many of these were expected to be right.
        accepted: as many were right.
        accepted_at: in how many passes the first drafted token on the accepted path was right, the second, and so on.
        sources: drafted and accepted ones, per source.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    forward_passes: int = 0
    drafts: int = 0
    prefill_seconds: float = 0.0
    decode_seconds: float = 0.0
    decode_tokens: int = 0
    proposed: int = 0
    drafted: int = 0
    expected: float = 0.0
    accepted: int = 0
    accepted_at: tuple[int, ...] = ()
    sources: Mapping[str, SourceStats] = field(default_factory=dict)

    @property
    def tokens_per_forward(self) -> float:
        """Delivered tokens per counted forward pass; 0 before the first."""
        return self.completion_tokens / self.forward_passes if self.forward_passes else 0.0

    @property
    def decode_tokens_per_second(self) -> float:
        """Speed of the decode phase; 0 if there was none."""
        return self.decode_tokens / self.decode_seconds if self.decode_seconds else 0.0

    def as_dict(self) -> dict[str, Any]:
        """The numbers as JSON-ready values."""
        return {**asdict(self), "tokens_per_forward": self.tokens_per_forward}


@dataclass(frozen=True, slots=True)
class Load:
    """What an engine is busy with at a moment.

    Attributes:
        running: requests that take part in forward passes.
        waiting: requests that wait for a place or for memory.
        running_tokens: tokens that the running ones have memory for.
        kept_tokens: tokens of ended requests whose keys and values are kept.
        preempted: how often a running request had to wait again, since the start.
    """

    running: int = 0
    waiting: int = 0
    running_tokens: int = 0
    kept_tokens: int = 0
    preempted: int = 0

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
        completion_tokens: tokens delivered.
        forward_passes: forwards that chose at least one token; prefill chunks are not counted.
        prefill_seconds: from the start of the work to the first chosen token.
        decode_seconds: from the first chosen token to the last.
        decode_tokens: tokens delivered in that time; those of the first forward are not among them.
        drafted: drafted nodes checked, all sources together.
        accepted: drafted nodes that were right.
        sources: the same two, per source.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    forward_passes: int = 0
    prefill_seconds: float = 0.0
    decode_seconds: float = 0.0
    decode_tokens: int = 0
    drafted: int = 0
    accepted: int = 0
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

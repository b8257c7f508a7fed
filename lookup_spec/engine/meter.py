"""Counts and clocks of one running session."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from lookup_spec.stats import SourceStats, Stats


class Meter:
    """Adds up what a session costs and yields; :meth:`stats` is the sum so far."""

    def __init__(self) -> None:
        self._forwards = 0
        self._drafts = 0
        self._depths: Counter[int] = Counter()
        self._cached: int | None = None
        self._proposed = 0
        self._expected = 0.0
        self._drafted: Counter[str] = Counter()
        self._accepted: Counter[str] = Counter()
        self._started: float | None = None
        self._first: float | None = None
        self._first_delivered = 0
        self._ended: float | None = None

    def start(self) -> None:
        """The first work on the session begins; later calls do nothing."""
        if self._started is None:
            self._started = time.perf_counter()

    def reuse(self, tokens: int) -> None:
        """The session begins with so many tokens computed. What it finds at later calls is its own work."""
        if self._cached is None:
            self._cached = tokens

    def plan(self, proposed: int, expected: float) -> None:
        """A forward pass is about to check drafts.

        Args:
            proposed: drafted nodes there were to choose from.
            expected: how many of the chosen ones will be right, by their probabilities.
        """
        self._proposed += proposed
        self._expected += expected

    def step(self, drafted: Sequence[str], accepted: Sequence[str], delivered: int) -> None:
        """A forward pass chose tokens.

        Args:
            drafted: source of each drafted node.
            accepted: source of each drafted node that was right and delivered.
            delivered: tokens delivered so far.
        """
        self._forwards += 1
        self._drafts += bool(drafted)
        self._depths.update(range(len(accepted)))
        self._drafted.update(drafted)
        self._accepted.update(accepted)
        if self._first is None:
            self._first = time.perf_counter()
            self._first_delivered = delivered

    def end(self) -> None:
        """The session is over."""
        self._ended = time.perf_counter()

    def stats(self, prompt_tokens: int, completion_tokens: int) -> Stats:
        """Everything so far, as one value."""
        now = self._ended or time.perf_counter()
        started = self._started or now
        first = self._first or now
        return Stats(
            prompt_tokens=prompt_tokens,
            cached_tokens=self._cached or 0,
            completion_tokens=completion_tokens,
            forward_passes=self._forwards,
            drafts=self._drafts,
            prefill_seconds=first - started,
            decode_seconds=now - first,
            decode_tokens=max(completion_tokens - self._first_delivered, 0),
            proposed=self._proposed,
            drafted=sum(self._drafted.values()),
            expected=self._expected,
            accepted=sum(self._accepted.values()),
            accepted_at=tuple(self._depths[depth] for depth in range(len(self._depths))),
            sources={
                source: SourceStats(self._drafted[source], self._accepted[source]) for source in sorted(self._drafted)
            },
        )

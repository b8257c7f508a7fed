"""Steps all running sessions together, one forward pass at a time."""

from __future__ import annotations

import time
from collections.abc import Sequence

from lookup_spec.engine.budget import CostCurve, Target, Wish, share
from lookup_spec.engine.session import Session


class Runner:
    """The engine's step. Not safe for use by several threads at once; whoever owns it steps it.

    Args:
        model: the target.
        max_draft_tokens: most drafted nodes per session and step.
        prefill_chunk: most prompt tokens per session and step, so that one long prompt does not stall the others.
        max_sessions: sessions stepped together; the others wait in order of arrival.
        costs: what passes cost, to draft only as much as pays; None always drafts as much as allowed.
    """

    def __init__(
        self,
        model: Target,
        *,
        max_draft_tokens: int,
        prefill_chunk: int = 512,
        max_sessions: int = 32,
        costs: CostCurve | None = None,
    ) -> None:
        self._model = model
        self._costs = costs
        self._max_draft_tokens = max_draft_tokens
        self._prefill_chunk = prefill_chunk
        self._max_sessions = max_sessions
        self._sessions: list[Session] = []

    @property
    def sessions(self) -> Sequence[Session]:
        """Sessions that are not finished, in order of arrival."""
        return tuple(session for session in self._sessions if not session.finished)

    def add(self, session: Session) -> None:
        """Lets a session take part from the next step on."""
        if not session.finished:
            self._sessions.append(session)

    def step(self) -> Sequence[Session]:
        """Runs one forward pass over the first sessions in line.

        A session that finishes leaves. An error that concerns one session ends that one; an error of the forward
        pass itself ends all that took part.

        Returns:
            The sessions that took part.
        """
        self._sessions = list(self.sessions)
        running = self._sessions[: self._max_sessions]
        self._run(running)
        self._sessions = list(self.sessions)
        return running

    def _run(self, running: Sequence[Session]) -> None:
        wishes: list[Wish] = []
        asked: list[Session] = []
        for session in running:
            try:
                wishes.append(session.wish(self._max_draft_tokens, self._prefill_chunk))
                asked.append(session)
            except Exception as error:
                session.fail(error)
        if not asked:
            return
        drafts = [len(wish.drafts) for wish in wishes] if self._costs is None else share(self._costs, wishes)
        batch = [session.rows(count) for session, count in zip(asked, drafts, strict=True)]
        started = time.perf_counter()
        try:
            logits = self._model.forward(batch)
        except Exception as error:
            for session in asked:
                session.fail(error)
            return
        for session, rows in zip(asked, logits, strict=True):
            try:
                session.advance(rows)
            except Exception as error:
                session.fail(error)
        if self._costs is not None:
            # Choosing is part of it: it grows with the rows too, and only then has a GPU surely finished.
            self._costs.observe(sum(len(rows.tokens) for rows in batch), time.perf_counter() - started)

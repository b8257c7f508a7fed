"""Steps all running sessions together, one forward pass at a time."""

from __future__ import annotations

from collections.abc import Sequence

from lookup_spec.engine.session import Session
from lookup_spec.model.forward import PackedModel, Rows


class Runner:
    """The engine's step. Not safe for use by several threads at once; whoever owns it steps it.

    Args:
        model: the target.
        max_draft_tokens: most drafted nodes per session and step.
        prefill_chunk: most prompt tokens per session and step, so that one long prompt does not stall the others.
        max_sessions: sessions stepped together; the others wait in order of arrival.
    """

    def __init__(
        self, model: PackedModel, *, max_draft_tokens: int, prefill_chunk: int = 512, max_sessions: int = 32
    ) -> None:
        self._model = model
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
        batch: list[Rows] = []
        asked: list[Session] = []
        for session in running:
            try:
                batch.append(session.rows(self._max_draft_tokens, self._prefill_chunk))
                asked.append(session)
            except Exception as error:
                session.fail(error)
        if not asked:
            return
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

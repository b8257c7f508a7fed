"""Steps all running sessions together, one forward pass at a time."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence

from lookup_spec.engine.budget import CostCurve, Target, Wish, share
from lookup_spec.engine.parallel import best_parallel
from lookup_spec.engine.prefix import PrefixCache
from lookup_spec.engine.scheduler import Limits, Scheduler, Turn
from lookup_spec.engine.session import Session
from lookup_spec.params import Priority
from lookup_spec.stats import Load

_LATELY = 64  # wishes, to tell from what sessions are like


class Runner:
    """The engine's step. Not safe for use by several threads at once; whoever owns it steps it.

    Args:
        model: the target.
        limits: how much runs and waits at a time, and in how much memory.
        costs: what passes cost, to draft only as much as pays; None always drafts as much as allowed.
    """

    def __init__(self, model: Target, limits: Limits | None = None, *, costs: CostCurve | None = None) -> None:
        self._model = model
        self._costs = costs
        self._limits = limits or Limits()
        self._scheduler = Scheduler(self._limits, PrefixCache(self._limits.kept_tokens))
        self._lately: deque[Wish] = deque(maxlen=_LATELY)

    @property
    def sessions(self) -> Sequence[Session]:
        """Sessions that are not finished, in order of arrival."""
        return self._scheduler.sessions

    @property
    def load(self) -> Load:
        """What is going on."""
        return self._scheduler.load

    @property
    def best_parallel(self) -> int:
        """How many sessions like those of the last steps to run at the same time, for the most tokens per second."""
        if self._costs is None or not self._lately:
            return self._limits.max_sessions
        return best_parallel(self._costs, self._lately, self._limits.max_sessions)

    def add(self, session: Session, *, tenant: str = "", priority: Priority = "interactive") -> None:
        """Lets a session take part as soon as there is room for it.

        Args:
            session: it must be new.
            tenant: what it computes is used again for sessions of the same tenant only.
            priority: all interactive sessions come before those of a batch.

        Raises:
            InvalidRequestError: there can never be memory for it.
        """
        self._scheduler.add(session, tenant, priority)

    def settle(self) -> None:
        """Lets finished and cancelled sessions leave at once, rather than with the next step."""
        self._scheduler.settle()

    def step(self) -> Sequence[Session]:
        """Runs one forward pass over the sessions whose turn it is.

        A session that finishes leaves. An error that concerns one session ends that one; an error of the forward
        pass itself ends all that took part.

        Returns:
            The sessions that took part, the most urgent and longest waiting first.
        """
        turns = self._scheduler.plan()
        self._run(turns)
        self._scheduler.settle()
        return [turn.session for turn in turns]

    def _run(self, turns: Sequence[Turn]) -> None:
        wishes: list[Wish] = []
        asked: list[Session] = []
        patient = True
        for turn in turns:
            try:
                wishes.append(turn.session.wish(self._limits.max_draft_tokens, turn.prefill))
                asked.append(turn.session)
                patient = patient and turn.patient
            except Exception as error:
                turn.session.fail(error)
        if not asked:
            return
        self._lately.extend(wish for wish in wishes if wish.drafts is not None)
        if self._costs is None:
            drafts = [len(wish.drafts or ()) for wish in wishes]
        else:
            drafts = share(self._costs, wishes, sum(wish.prefill for wish in wishes) if patient else 0)
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
        if self._costs is not None and not any(wish.prefill for wish in wishes):
            # Choosing is part of it: it grows with the rows too, and only then has a GPU surely finished.
            pairs = sum((1 + count) * wish.context for count, wish in zip(drafts, wishes, strict=True))
            self._costs.observe(sum(drafts) + len(drafts), pairs, time.perf_counter() - started)

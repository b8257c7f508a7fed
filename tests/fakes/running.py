"""Runs sessions to their end, the way an engine does, and watches the promises of every step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from lookup_spec.engine.runner import Runner
from lookup_spec.engine.scheduler import Limits
from lookup_spec.engine.session import Output, Piece, Session
from lookup_spec.grammar import Matcher
from lookup_spec.model.forward import Rows
from lookup_spec.params import SamplingParams
from lookup_spec.propose.guided import GuidedProposer
from lookup_spec.propose.prompt import Prompt
from lookup_spec.propose.protocol import NoProposer, Proposer
from lookup_spec.propose.seen import Seen
from lookup_spec.propose.tree import DraftTree


@dataclass(slots=True)
class Job:
    """One request; what makes something is called once for each run."""

    prompt: Sequence[int]
    params: SamplingParams
    make_proposer: Callable[[], Proposer] = NoProposer
    make_output: Callable[[], Output | None] = lambda: None
    make_matcher: Callable[[], Matcher | None] = lambda: None
    make_habits: Callable[[], Sequence[Matcher]] = tuple


@dataclass(slots=True)
class Answer:
    """All that came out of one session."""

    pieces: list[Piece] = field(default_factory=list)
    error: Exception | None = None

    @property
    def token_ids(self) -> list[int]:
        return [token for piece in self.pieces for token in piece.token_ids]

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)

    @property
    def logprobs(self) -> list[Any]:
        return [entry for piece in self.pieces for entry in piece.logprobs]

    @property
    def finish_reason(self) -> str | None:
        return self.pieces[-1].finish_reason if self.pieces else None

    @property
    def completion_tokens(self) -> int | None:
        stats = self.pieces[-1].stats if self.pieces else None
        return None if stats is None else stats.completion_tokens

    def drain(self, session: Session) -> None:
        """Takes what there is."""
        if self.error is not None or self.finish_reason is not None:
            return
        try:
            while (piece := session.take()) is not None:
                self.pieces.append(piece)
                if piece.finish_reason is not None:
                    return
        except Exception as error:  # what the caller would have seen
            self.error = error


class WatchedProposer:
    """Passes everything on and counts the tokens of the text."""

    def __init__(self, inner: Proposer) -> None:
        self._inner = inner
        self.runner_ups = inner.runner_ups
        self.tokens: list[int] = []
        self.limits: list[int] = []

    def begin(self, prompt: Prompt) -> None:
        self.tokens = list(prompt.ids)
        self._inner.begin(prompt)

    def propose(self, limit: int) -> DraftTree:
        self.limits.append(limit)
        return self._inner.propose(limit)

    def observe(self, ids: Sequence[int], seen: Seen | None = None) -> None:
        self.tokens.extend(ids)
        self._inner.observe(ids, seen)


class WatchedModel:
    """Passes everything on; no position that the model does not have may be fed."""

    def __init__(self, inner: Any, context_length: int) -> None:
        self._inner = inner
        self._last_position = context_length - 1
        self.vocab_size: int = inner.vocab_size
        self.forwards = 0

    def new_cache(self, capacity: int = 0) -> Any:
        return self._inner.new_cache(capacity)

    def forward(self, batch: Sequence[Rows]) -> list[Tensor]:
        self.forwards += 1
        for rows in batch:
            depths: list[int] = []
            for parent in rows.parents:
                depths.append(depths[parent] + 1 if parent >= 0 else 0)
            assert rows.cache.length + max(depths) <= self._last_position, "a position beyond the context"
        return self._inner.forward(batch)


def _proposer(job: Job, matcher: Matcher | None) -> Proposer:
    proposer = job.make_proposer()
    if matcher is None or isinstance(proposer, NoProposer):
        return proposer
    return GuidedProposer(proposer, matcher, job.make_habits())


def answer_all(
    model: Any,
    jobs: Sequence[Job],
    *,
    width: int,
    ends: Iterable[int],
    context: int,
    chunk: int = 512,
    at_once: int = 32,
    stream: bool = True,
) -> list[Answer]:
    """Runs all jobs on one runner; takes the pieces after every step, or without ``stream`` at the end."""
    watched = WatchedModel(model, context)
    runner = Runner(watched, Limits(max_draft_tokens=width, prefill_chunk=chunk, max_sessions=at_once))
    matchers = [job.make_matcher() for job in jobs]
    proposers = [WatchedProposer(_proposer(job, matcher)) for job, matcher in zip(jobs, matchers, strict=True)]
    sessions = [
        Session(
            Prompt.plain(job.prompt),
            job.params,
            proposer=proposer,
            output=job.make_output(),
            cache=watched.new_cache(),
            end_ids=ends,
            context_length=context,
            vocab_size=watched.vocab_size,
            matcher=matcher,
        )
        for job, proposer, matcher in zip(jobs, proposers, matchers, strict=True)
    ]
    answers = [Answer() for _ in jobs]
    for session in sessions:
        runner.add(session)
    while runner.sessions:
        runner.step()
        for job, session, proposer, answer in zip(jobs, sessions, proposers, answers, strict=True):
            answered = len(proposer.tokens) - len(job.prompt)
            short = len(proposer.tokens) - 1 - session.cache.length
            if not session.finished:
                assert short == 0 or (answered == 0 and short > 0), "the cache holds all tokens but the pending one"
            assert all(limit <= width for limit in proposer.limits)
            if stream:
                answer.drain(session)
    for session, answer in zip(sessions, answers, strict=True):
        answer.drain(session)
    return answers

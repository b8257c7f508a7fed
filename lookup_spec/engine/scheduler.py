"""Who takes part in the next step, with how many prompt tokens, and within which memory."""

from __future__ import annotations

import logging
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import get_args

from lookup_spec.engine.prefix import Ids, PrefixCache, as_ids, begin_alike, common_prefix
from lookup_spec.engine.session import Session
from lookup_spec.errors import InvalidRequestError
from lookup_spec.model.cache import KVCache, in_blocks
from lookup_spec.params import Priority
from lookup_spec.stats import Load

_log = logging.getLogger(__name__)

_URGENCY: dict[str, int] = {name: place for place, name in enumerate(get_args(Priority))}
_WORTH_WAITING = 32  # tokens: rather copied in the next steps than computed twice in this one


@dataclass(frozen=True, slots=True)
class Limits:
    """What the scheduler keeps to.

    Attributes:
        max_sessions: sessions that run at the same time; any number may wait.
        prefill_chunk: most prompt tokens in one step, all sessions together, so that no answer waits long for
            another's prompt.
        max_draft_tokens: most drafted nodes per session and step.
        kv_tokens: tokens whose keys and values fit into memory, running and kept ones together; None for any number.
        kept_tokens: most tokens whose keys and values are kept when their session has ended.
    """

    max_sessions: int = 32
    prefill_chunk: int = 512
    max_draft_tokens: int = 64
    kv_tokens: int | None = None
    kept_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Turn:
    """A session's part in a step.

    Attributes:
        session: whose.
        prefill: most tokens of its prompt to compute.
        patient: it belongs to a batch, where all answers together count and not how soon the next piece comes.
    """

    session: Session
    prefill: int
    patient: bool


@dataclass(eq=False, slots=True)
class _Entry:
    session: Session
    tenant: str
    urgency: int
    number: int  # in order of arrival
    ids: Ids  # all tokens known when it began to wait

    @property
    def cache(self) -> KVCache:
        return self.session.cache

    @property
    def most_room(self) -> int:
        """Room for the longest answer; with it a session can end, whatever its drafts."""
        return in_blocks(self.session.most_tokens)


def _rank(entry: _Entry) -> tuple[int, int]:
    return entry.urgency, entry.number


class Scheduler:
    """Sessions in order of urgency and arrival, running within a fixed memory.

    A session begins when there is a place for it and memory for an answer about as long as its prompt; longer ones
    make their caches grow. If then memory is short, kept prefixes go first, and after them the caches of the least
    urgent and youngest sessions: these wait again, and compute their text, answer included, anew. The first in line
    always goes on, so all come to an end.

    A session begins with what others of its tenant have computed of the same text, ended or running. It rather waits
    a few steps than computes what one of them is about to compute.

    Args:
        limits: what to keep to.
        prefixes: where the caches of ended sessions go.
    """

    def __init__(self, limits: Limits, prefixes: PrefixCache) -> None:
        self._limits = limits
        self._prefixes = prefixes
        self._waiting: list[_Entry] = []
        self._running: list[_Entry] = []  # both by rank
        self._numbers = count()
        self._preempted = 0

    @property
    def sessions(self) -> Sequence[Session]:
        """Sessions that are not finished, in order of arrival."""
        entries = sorted([*self._running, *self._waiting], key=lambda entry: entry.number)
        return tuple(entry.session for entry in entries if not entry.session.finished)

    @property
    def load(self) -> Load:
        """What is going on."""
        return Load(
            running=len(self._running),
            waiting=len(self._waiting),
            running_tokens=self._used(),
            kept_tokens=self._prefixes.tokens,
            preempted=self._preempted,
        )

    def add(self, session: Session, tenant: str, priority: Priority) -> None:
        """Lets a session wait for its turn.

        Raises:
            InvalidRequestError: memory can never hold it.
        """
        if session.finished:
            return
        room = self._limits.kv_tokens
        entry = _Entry(session, tenant, _URGENCY[priority], next(self._numbers), as_ids(session.tokens))
        if room is not None and entry.most_room > room:
            raise InvalidRequestError(
                f"The request needs memory for {entry.most_room} tokens, but there is memory for {room}; "
                "shorten the prompt, lower max_tokens, or give the engine more memory."
            )
        insort(self._waiting, entry, key=_rank)

    def plan(self) -> list[Turn]:
        """Starts those for whom there is room and gives everyone running their part; nobody if there is no one.

        Sessions in the middle of an answer all take part.
        """
        self.settle()
        self._start_waiting()
        prefill = self._share_prefill()
        self._make_room(prefill)
        return [
            Turn(entry.session, prefill.get(entry, 0), entry.urgency == _URGENCY["batch"])
            for entry in self._running
            if entry in prefill or not entry.session.missing
        ]

    def settle(self) -> None:
        """Lets those that are finished leave. What they computed is kept, unless they failed."""
        for entry in [entry for entry in self._running if entry.session.finished]:
            self._running.remove(entry)
            self._release(entry, keep=entry.session.error is None)
        self._waiting = [entry for entry in self._waiting if not entry.session.finished]

    def _start_waiting(self) -> None:
        for entry in list(self._waiting):
            if self._may_copy_soon(entry):
                continue
            if not self._find_place(entry):
                break  # nobody overtakes the first in line by being smaller
            self._waiting.remove(entry)
            insort(self._running, entry, key=_rank)
            try:
                self._start(entry)
            except Exception as error:  # its memory cannot be had, which does not concern the others
                entry.session.fail(error)
                self._running.remove(entry)
                entry.cache.clear()

    def _may_copy_soon(self, entry: _Entry) -> bool:
        """Whether somebody no less urgent is about to compute what this text begins with."""
        known = entry.ids[:-1]
        return any(
            begin_alike(other.ids, known, other.cache.length + _WORTH_WAITING)
            for other in self._running
            if other.tenant == entry.tenant and other.urgency <= entry.urgency and other.session.missing
        )

    def _find_place(self, entry: _Entry) -> bool:
        """Makes sure of a place and memory, if need be at the cost of less urgent sessions; false if there is none."""
        yielding = [other for other in self._running if other.urgency > entry.urgency]
        room = self._first_room(entry)
        if len(self._running) - len(yielding) >= self._limits.max_sessions:
            return False
        if not self._fits(room - sum(other.cache.capacity for other in yielding)):
            return False
        while len(self._running) >= self._limits.max_sessions:
            self._preempt(yielding.pop(), keep=True)
        while not self._fits(room):
            self._preempt(yielding.pop(), keep=False)
        return True

    def _first_room(self, entry: _Entry) -> int:
        return min(in_blocks(2 * len(entry.ids) + self._limits.max_draft_tokens), entry.most_room)

    def _start(self, entry: _Entry) -> None:
        """Gives a session what is there already of its text; its last token is always computed anew."""
        known = entry.ids[:-1]
        found = self._prefixes.match(entry.tenant, known)
        reused = sum(rows.length for rows in found)
        for other in self._running:
            if other.tenant != entry.tenant or other.cache.length <= reused:
                continue
            if begin_alike(other.ids, known, reused + 1):
                reused = min(common_prefix(other.ids, known), other.cache.length)
                found = [other.cache.rows(0, reused)]
        self._reserve(entry, self._first_room(entry))
        for rows in found:
            entry.cache.append(rows)
        entry.session.reuse(reused)

    def _share_prefill(self) -> dict[_Entry, int]:
        """Prompt tokens for this step: half for whoever is first in line, that none starves, and the rest for the
        shortest, that none waits long for a long one."""
        left = self._limits.prefill_chunk
        shares: dict[_Entry, int] = {}

        def give(entry: _Entry, most: int) -> int:
            rows = min(entry.session.missing - shares.get(entry, 0), most)
            if rows:
                shares[entry] = shares.get(entry, 0) + rows
            return rows

        missing = [entry for entry in self._running if entry.session.missing]
        for entry in missing[:1]:
            left -= give(entry, left // 2)
        for entry in sorted(missing, key=lambda entry: (entry.urgency, entry.session.missing)):
            left -= give(entry, left)
        return shares

    def _make_room(self, prefill: dict[_Entry, int]) -> None:
        """Lets the caches grow for the rows that this step may write."""
        for entry in list(self._running):
            if entry not in self._running:
                break  # all behind it had to make room, too
            room = entry.cache.capacity
            rows = prefill.get(entry, 0) + 1 + self._limits.max_draft_tokens
            needed = min(in_blocks(entry.cache.length + rows), entry.most_room)
            if needed <= room:
                continue
            roomy = min(max(needed, in_blocks(room + room // 2)), entry.most_room)
            if self._fits(roomy - room):
                self._reserve(entry, roomy)
                continue
            while not self._fits(needed - room) and entry in self._running:
                self._preempt(self._running[-1], keep=False)
            if entry in self._running:
                self._reserve(entry, needed)

    def _preempt(self, entry: _Entry, *, keep: bool) -> None:
        """Takes a session's memory away and lets it wait again, in its old place."""
        self._running.remove(entry)
        self._release(entry, keep=keep)
        entry.ids = as_ids(entry.session.tokens)
        insort(self._waiting, entry, key=_rank)
        self._preempted += 1

    def _release(self, entry: _Entry, *, keep: bool) -> None:
        tokens = as_ids(entry.session.tokens[: entry.cache.length])
        try:
            if keep:
                self._prefixes.put(entry.tenant, tokens, entry.cache)
        except Exception:  # the device cannot hold what it promised; nobody needs to suffer for what is only kept
            _log.warning("the keys and values of %d tokens could not be kept", len(tokens), exc_info=True)
        finally:
            entry.cache.clear()

    def _reserve(self, entry: _Entry, capacity: int) -> None:
        entry.cache.reserve(capacity)
        if self._limits.kv_tokens is not None:
            self._prefixes.shrink(self._limits.kv_tokens - self._used())

    def _fits(self, more: int) -> bool:
        """Whether running sessions may take so many tokens more; kept prefixes give way."""
        return self._limits.kv_tokens is None or self._used() + more <= self._limits.kv_tokens

    def _used(self) -> int:
        return sum(entry.cache.capacity for entry in self._running)

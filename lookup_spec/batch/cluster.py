"""Requests on the engines of a Ray cluster.

Actors rather than Ray Data: a result reaches its file when it is there and not when its block of rows is through, an
engine is never drained between blocks, and one request that ends its workers fails alone, not the job.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from lookup_spec.batch.dispatch import Dispatch
from lookup_spec.batch.in_order import InOrder
from lookup_spec.batch.manifest import Facts
from lookup_spec.batch.pool import Cost
from lookup_spec.batch.request import BadLine, Request
from lookup_spec.batch.results import Event
from lookup_spec.batch.station import Station
from lookup_spec.batch.worker import Report, Worker
from lookup_spec.errors import BatchError, LookupSpecError

_BEGIN, _AHEAD = 4, 4  # requests at the same time until a worker knows better, and that wait beside it
_BEHIND = 4  # times as many requests may be held as run, for the sake of order
_LOOK_SECONDS = 10.0  # between looks at which machines there are
_PATIENCE = 0.5  # seconds
_END_SECONDS = 10.0  # for workers to end in order
_MOST_LOSSES = 5  # and two a worker, with nothing answered in between: then it is not the requests


@contextmanager
def connected(address: str) -> Iterator[None]:
    """A connection to a cluster.

    Args:
        address: ``auto`` for the one that runs here or that RAY_ADDRESS names, ``local`` for one that begins and ends
            with this, or where a cluster's head is.

    Raises:
        BatchError: there is none.
    """
    own: dict[str, Any] = {"include_dashboard": False} if address == "local" else {}
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **own)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise BatchError(f"There is no Ray cluster at {address!r}: {error}") from error
    try:
        yield
    finally:
        ray.shutdown()


@dataclass(eq=False, slots=True)
class _Hand:
    """A worker, and the call to it that is under way.

    Attributes:
        actor: it.
        call: None while it has nothing to do.
        report: the last one.
        open: it has loaded its model.
    """

    actor: Any
    call: Any
    report: Report = field(default_factory=Report)
    open: bool = False


class Cluster:
    """One engine for each GPU of a cluster, or for so many of its CPUs; machines may come and go.

    Args:
        make: makes an engine and what belongs to it; runs on the machines, where the same packages must be installed.
        cpus: that each engine has; None for one beside a GPU, or all of the smallest machine if there are no GPUs.
        keep_order: outcomes come in the order of the requests.

    Raises:
        BatchError: no machine has room for an engine, or none can be made.
        ModelError: the model cannot be loaded there.

    Attributes:
        facts: what answers depend on; the same on all machines.
    """

    def __init__(self, make: Callable[[], Station], cpus: int | None = None, *, keep_order: bool = False) -> None:
        self._make = make
        self._keep_order = keep_order
        self._cpus = cpus
        self._hands: list[_Hand] = []
        self._gone: list[Cost] = [Cost()]  # of workers that were lost
        self._losses = 0  # since something came to its end
        self._looked = -_LOOK_SECONDS
        self.facts: Facts = {}
        try:
            while not any(hand.open for hand in self._hands):
                self._grow()
                self._returned()
        except BaseException:
            self.close()
            raise

    @property
    def cost(self) -> Cost:
        """What it took so far."""
        return Cost.total([*self._gone, *(hand.report.cost for hand in self._hands)])

    @property
    def running(self) -> int:
        """Answers that are being generated."""
        return sum(hand.report.running for hand in self._hands)

    def run(self, requests: Iterable[Request | BadLine]) -> Generator[Sequence[Event], None, None]:
        """What has come to an end, again and again."""
        order = InOrder()
        dispatch: Dispatch[_Hand] = Dispatch(order.noting(requests))
        while True:
            self._grow()
            self._deal(dispatch, order)
            yield dispatch.bad_lines()
            if dispatch.done:
                return
            if (found := self._returned()) is None:
                continue
            hand, report = found
            if report is None:
                outcomes = dispatch.lose(hand)
            else:
                dispatch.keep(hand, report.parts)
                yield report.parts
                outcomes = dispatch.take(hand, report.outcomes)
            if outcomes:
                self._losses = 0
            yield order.put(outcomes) if self._keep_order else outcomes

    def close(self) -> None:
        """Ends all workers."""
        ending = [hand.actor.close.remote() for hand in self._hands if hand.open]
        if ending:
            ray.wait(ending, num_returns=len(ending), timeout=_END_SECONDS)
        for hand in self._hands:
            ray.kill(hand.actor)
        self._hands.clear()

    def _grow(self) -> None:
        """Starts workers where there is room for them."""
        if time.monotonic() - self._looked < _LOOK_SECONDS and self._hands:
            return
        self._looked = time.monotonic()
        nodes = ray.nodes()
        cpus, gpus, count = _room([node["Resources"] for node in nodes if node["Alive"]], self._cpus)
        if not count and not self.facts:
            raise BatchError(f"No machine of the cluster has {cpus} CPUs for an engine; give fewer with --ray-cpus.")
        options = {"num_cpus": cpus, "num_gpus": gpus, "max_restarts": 0}
        for _ in range(len(self._hands), count):
            actor: Any = ray.remote(Worker).options(**options).remote(self._make)
            self._hands.append(_Hand(actor, actor.open.remote()))

    def _deal(self, dispatch: Dispatch[_Hand], order: InOrder) -> None:
        """Gives requests to whoever can do with some."""
        for hand in self._hands:
            if hand.call is not None or not hand.open:
                continue
            most = (hand.report.parallel or _BEGIN) + _AHEAD
            fresh = not self._keep_order or len(order) < _BEHIND * most * len(self._hands)
            requests = dispatch.deal(hand, most, fresh=fresh)
            if requests or dispatch.has(hand):
                hand.call = hand.actor.exchange.remote(requests)

    def _returned(self) -> tuple[_Hand, Report | None] | None:
        """A worker that has something to report, or is lost and has not; None if there is none for now."""
        calls = {hand.call: hand for hand in self._hands if hand.call is not None}
        if not calls:
            time.sleep(_PATIENCE)  # all machines are gone; others may come
            return None
        ready, _ = ray.wait(list(calls), num_returns=1, timeout=_PATIENCE)
        if not ready:
            return None
        hand = calls[ready[0]]
        hand.call = None
        try:
            said = ray.get(ready[0])
        except RayError as error:
            self._lose(hand, error)
            return hand, None
        if isinstance(said, Report):
            hand.report = said
            return hand, said
        self._opened(hand, said)
        return None

    def _opened(self, hand: _Hand, facts: Facts) -> None:
        hand.open = True
        differing = [name for name in facts if facts[name] != (self.facts or facts)[name]]
        if differing:
            found = ", ".join(f"{name} is {facts[name]!r} and {self.facts[name]!r}" for name in differing)
            raise BatchError(f"The cluster's machines would not answer alike: {found}; install the same on all.")
        self.facts = facts

    def _lose(self, hand: _Hand, error: RayError) -> None:
        cause = error.cause if isinstance(error, RayTaskError) else None
        if not hand.open and isinstance(cause, LookupSpecError):
            raise cause
        with suppress(RayError):
            ray.kill(hand.actor)  # it may be cut off only, and would go on
        self._hands.remove(hand)
        self._gone.append(hand.report.cost)
        self._losses += 1
        self._looked = -_LOOK_SECONDS  # there is room for another one
        if self._losses >= _MOST_LOSSES + 2 * len(self._hands):
            reason = cause if cause is not None else str(error).splitlines()[0]
            raise BatchError(f"The last {self._losses} workers ended without an answer; the last one: {reason}")


def _room(machines: Sequence[dict[str, float]], cpus: int | None) -> tuple[int, int, int]:
    """CPUs and GPUs for an engine, and how many engines there is room for.

    Args:
        machines: what each has of ``CPU`` and ``GPU``.
        cpus: for each engine, if that is decided.
    """
    gpus = sum(int(machine.get("GPU", 0)) for machine in machines)
    if gpus:
        return cpus or 1, 1, gpus
    counts = [int(machine["CPU"]) for machine in machines if machine.get("CPU")]
    cpus = cpus or min(counts, default=1)
    return cpus, 0, sum(count // cpus for count in counts)

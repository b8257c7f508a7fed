"""Replays recorded answers through proposers and counts forward passes. No model takes part."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from lookup_bench.layout import Case
from lookup_spec.propose.prompt import Prompt
from lookup_spec.propose.protocol import Proposer
from lookup_spec.propose.walk import walk

LONG_COPY = 32
"""From so many tokens in a row a copy counts as a long one."""


@dataclass(frozen=True, slots=True)
class Contestant:
    """A way to propose, under a name.

    Attributes:
        name: shown in tables.
        make: gives a fresh proposer for a case.
        prompt: what that proposer is told of the case.
    """

    name: str
    make: Callable[[Case], Proposer]
    prompt: Callable[[Case], Prompt] = attrgetter("prompt")


@dataclass(frozen=True, slots=True)
class Count:
    """What one answer took.

    Attributes:
        tokens: length of the answer.
        steps: forward passes.
        drafted: nodes checked besides node 0, all steps together.
        microseconds: the proposer's own time in each step, observing and proposing; ``[steps]``.
        copying: whether a long copy ran in each step: the target had followed its drafts to their ends for at least
            ``LONG_COPY`` tokens; ``[steps]``.
    """

    tokens: int
    steps: int
    drafted: int
    microseconds: tuple[float, ...]
    copying: tuple[bool, ...]


def replay(proposer: Proposer, prompt: Prompt, answer: Sequence[int], width: int, written: Sequence[int] = ()) -> Count:
    """Decodes one recorded answer: each step checks one tree of at most ``width`` drafted nodes.

    The answer plays the target: after a node at depth ``d`` it chooses the ``d``-th coming token, and a step
    yields the accepted tokens and one more.

    Args:
        proposer: a fresh one.
        prompt: what it is told.
        answer: what is decoded and counted.
        width: most drafted nodes a step.
        written: how the answer began, before it is counted.
    """
    proposer.begin(prompt)
    proposer.observe(written)
    done = steps = drafted = followed = 0
    times: list[float] = []
    copying: list[bool] = []
    observing = 0.0
    while done < len(answer):
        start = time.perf_counter()
        tree = proposer.propose(width)
        times.append((observing + time.perf_counter() - start) * 1e6)
        if len(tree) - 1 > width:
            raise AssertionError(f"{len(tree) - 1} nodes were drafted where {width} were allowed")
        copying.append(followed >= LONG_COPY)
        path = walk(tree, Recorded(answer, done)).path
        new = answer[done : done + len(path)]
        followed = followed + len(new) if path[-1] and path[-1] not in tree.parents else 0
        done += len(new)
        steps += 1
        drafted += len(tree) - 1
        start = time.perf_counter()
        proposer.observe(new)
        observing = time.perf_counter() - start
    return Count(len(answer), steps, drafted, tuple(times), tuple(copying))


class Recorded:
    """Chooses the recorded tokens one after another; past the end -1, which is no token and ends the walk."""

    def __init__(self, answer: Sequence[int], start: int) -> None:
        self._coming = iter(answer[start:])

    def __call__(self, node: int) -> int:  # noqa: ARG002 - the recorded answer does not depend on drafts
        return next(self._coming, -1)


@dataclass(frozen=True, slots=True)
class Figures:
    """One proposer at one width, over all records or a group of them.

    Attributes:
        proposer: its name.
        group: name of the group, or ``""`` for all.
        width: most drafted nodes a step.
        tokens_per_step: of the answers.
        drafted_per_step: nodes besides node 0.
        us_per_step: the proposer's own time, the median.
        oracle_fraction: tokens per step over those of the oracle.
        records: how many.
        tokens: of their answers.
    """

    proposer: str
    group: str
    width: int
    tokens_per_step: float
    drafted_per_step: float
    us_per_step: float
    oracle_fraction: float
    records: int
    tokens: int


def measure(contestant: Contestant, cases: Iterable[Case], width: int) -> list[Count]:
    """Replays every case with a proposer of its own, drafting at most ``width`` nodes a step."""
    return [replay(contestant.make(case), contestant.prompt(case), case.answer, width) for case in cases]


def figures(name: str, group: str, width: int, counts: Sequence[Count], bounds: Sequence[Count]) -> Figures:
    """Totals of a proposer's counts, at least one, beside the oracle's for the same cases."""
    tokens, steps = sum(count.tokens for count in counts), sum(count.steps for count in counts)
    return Figures(
        proposer=name,
        group=group,
        width=width,
        tokens_per_step=tokens / steps,
        drafted_per_step=sum(count.drafted for count in counts) / steps,
        us_per_step=statistics.median(time for count in counts for time in count.microseconds),
        oracle_fraction=sum(count.steps for count in bounds) / steps,
        records=len(counts),
        tokens=tokens,
    )


def compare(
    contestants: Sequence[Contestant],
    oracle: Contestant,
    cases: Sequence[Case],
    widths: Sequence[int],
    progress: Callable[[], None],
    group: Callable[[Case], str] | None = None,
) -> list[Figures]:
    """All contestants at all widths, the oracle last in each width; ``progress`` is called after each.

    Args:
        contestants: who proposes.
        oracle: the bound.
        cases: the recorded edits, at least one.
        widths: most drafted nodes a step.
        progress: called whenever a contestant has replayed all cases.
        group: which group a case belongs to; then there are also figures of each group, in order of their names, before
            those of all.
    """
    groups: dict[str, list[int]] = {}
    if group is not None:
        for place, case in enumerate(cases):
            groups.setdefault(group(case), []).append(place)
    parts = [*sorted(groups.items()), ("", list(range(len(cases))))]
    rows: list[Figures] = []
    for width in widths:
        bounds = measure(oracle, cases, width)
        for contestant in (*contestants, oracle):
            counts = bounds if contestant is oracle else measure(contestant, cases, width)
            rows += [
                figures(contestant.name, name, width, [counts[n] for n in places], [bounds[n] for n in places])
                for name, places in parts
            ]
            progress()
    return rows

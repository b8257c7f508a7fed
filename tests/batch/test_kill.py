"""A job that is killed at any moment, as often as may be, ends with what it gives undisturbed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup_spec.batch.lines import Line
from lookup_spec.batch.parts import Part
from lookup_spec.batch.request import BadLine, parse
from lookup_spec.batch.results import Outcome, Place, Results
from tests.alone import alone

ERROR = {"error": {"message": "no", "type": "x", "param": None, "code": "bad"}}
INPUT = [
    Line(number, data)
    for number, data in enumerate(
        [
            *(json.dumps({"custom_id": f"r{n}", "url": "/", "body": {"n": n}}).encode() for n in range(4)),
            b"broken",
            json.dumps({"custom_id": "r1", "url": "/", "body": {"n": 9}}).encode(),
            *(json.dumps({"custom_id": f"r{n}", "url": "/", "body": {"n": n}}).encode() for n in range(4, 7)),
        ],
        1,
    )
]


class Killed(BaseException):
    """Stands for the end of the process: nothing in the program catches it."""


@contextmanager
def killed_at(call: int, share: float) -> Iterator[None]:
    """Ends the process at a call to the system that changes a file; a write may have got a share of its bytes out."""
    left = call

    def before(real: Any) -> Any:
        def do(*arguments: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left >= 0:
                return real(*arguments, **options)
            if real is write and share:
                write(arguments[0], arguments[1][: int(len(arguments[1]) * share)])
            raise Killed

        return do

    write = os.write
    with pytest.MonkeyPatch.context() as patch:
        for name in ("write", "fsync", "ftruncate", "replace", "open"):
            patch.setattr(os, name, before(getattr(os, name)))
        yield


def work(place: Place) -> int:
    """Answers all that is left, each in two parts; ends like a process that is gone, without closing anything in order.

    Returns:
        How many parts earlier runs had kept.
    """
    kept = 0
    results = Results(place, {"model": "m"})
    try:
        for found in results.unfinished(map(parse, INPUT)):
            if isinstance(found, BadLine):
                results.report(found)
                continue
            for step in "ab":
                digest = step * 32
                if digest in found.kept:
                    assert found.kept[digest] == {"of": found.body["n"]}
                    kept += 1
                else:
                    results.keep(Part(found.custom_id, digest, {"of": found.body["n"]}))
            if found.body["n"] % 3 == 2:
                results.write(Outcome(found, 400, ERROR))
            else:
                results.write(Outcome(found, 200, {"said": found.body["n"]}))
    finally:
        results._close()
    return kept


def outcome(place: Place) -> tuple[list[bytes], list[bytes]]:
    return place.answers.read_bytes().splitlines(), place.failures.read_bytes().splitlines()


@given(st.lists(st.tuples(st.integers(0, 14), st.sampled_from([0.0, 0.3, 0.999, 1.0])), max_size=6))
@settings(max_examples=30)
def test_killed_at_any_call_a_job_ends_as_undisturbed(
    tmp_path_factory: pytest.TempPathFactory, kills: list[tuple[int, float]]
) -> None:
    """Line by line: results that were written are never lost, doubled, torn or changed."""
    place = Place.beside(tmp_path_factory.mktemp("job") / "out.jsonl")
    undisturbed = Place.beside(tmp_path_factory.mktemp("job") / "out.jsonl")
    work(undisturbed)
    for call, share in kills:
        try:
            with killed_at(call, share):
                work(place)
        except Killed:
            continue
    work(place)
    assert outcome(place) == outcome(undisturbed)
    assert not place.parts.exists()


def test_what_was_kept_before_a_kill_is_there_afterwards(tmp_path: Path) -> None:
    """At whichever call it came: the fewer calls were made before, the fewer parts are kept, and at the last two."""
    kept = []
    for call in range(40):
        place = Place.beside(tmp_path / f"{call}.jsonl")
        try:
            with killed_at(call, 0.5):
                work(place)
        except Killed:
            kept.append(work(place))
    assert {0, 1, 2} <= set(kept)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "kills"),
    [("requests", 100), ("summaries", 40)],
)
def test_killed_by_the_system_a_job_ends_as_undisturbed(tmp_path: Path, kind: str, kills: int) -> None:
    """With a real model, real processes and SIGKILL: one right result for each request, or long text."""
    assert alone("tests.batch.killing", tmp_path, kind, kills, 1)["killed"] == kills

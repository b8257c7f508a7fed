"""Finished parts of unfinished answers, on disk: there as long as they mean something."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from lookup_spec.batch import parts as module
from lookup_spec.batch.parts import Part, Parts
from lookup_spec.batch.request import Request
from lookup_spec.batch.results import Outcome, Place, Results
from lookup_spec.errors import OtherJobError


def part(name: str, number: int) -> Part:
    return Part(name, f"{number:032x}", {"text": f"ä\ud800{number}\u2028"})


def unfinished(_: str) -> bool:
    return False


def test_parts_are_given_out_once_in_the_next_run(tmp_path: Path) -> None:
    """Also if the last one was torn, and only those of requests that are not finished."""
    path = tmp_path / "out.parts.jsonl"
    with closing(Parts(path, unfinished)) as parts:
        assert parts.take("a") == {}
        for number in range(3):
            parts.keep(part("a", number))
        parts.keep(part('"b"', 3))
    path.write_bytes(path.read_bytes()[:-5])
    with closing(Parts(path, unfinished)) as parts:
        assert parts.take("a") == {part("a", number).digest: part("a", number).said for number in range(3)}
        assert parts.take("a") == parts.take('"b"') == {}
    with closing(Parts(path, lambda name: name == "a")) as parts:
        assert parts.take("a") == {}
    assert not path.exists()


def test_a_file_is_there_only_while_there_is_something_to_keep(tmp_path: Path) -> None:
    path = tmp_path / "out.parts.jsonl"
    with closing(Parts(path, unfinished)) as parts:
        assert not path.exists()
        parts.keep(part("a", 1))
        parts.drop("b")
        assert path.exists()
        parts.drop("a")
    assert not path.exists()


def test_a_file_does_not_grow_with_finished_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what is unfinished stays in it."""
    monkeypatch.setattr(module, "_MOST_DEAD", 2000)
    path = tmp_path / "out.parts.jsonl"
    with closing(Parts(path, unfinished)) as parts:
        parts.keep(part("long", 0))
        for number in range(300):
            parts.keep(part("long" if number % 150 == 0 else "short", number))
            if number % 3 == 2:
                parts.drop("short")
            assert path.stat().st_size < 3000
    with closing(Parts(path, unfinished)) as parts:
        assert set(parts.take("long")) == {part("long", number).digest for number in (0, 150)}


def test_a_file_that_holds_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "out.parts.jsonl"
    path.write_text("my notes\n")
    with pytest.raises(OtherJobError, match="Line 1"):
        Parts(path, unfinished)
    assert path.read_text() == "my notes\n"


def test_parts_are_bound_to_the_job_before_there_are_results(tmp_path: Path) -> None:
    """What another job would make of a text is none of them; an answer ends them."""
    place, request = Place.beside(tmp_path / "out.jsonl"), Request(1, "a", "summary", {"text": "one"})
    with closing(Results(place, {"model": "tiny"})) as results:
        results.keep(part("a", 1))
    with pytest.raises(OtherJobError, match="model was 'tiny', now 'large'"):
        Results(place, {"model": "large"})
    with closing(Results(place, {"model": "tiny"})) as results:
        [found] = results.unfinished([request])
        assert isinstance(found, Request)
        assert (found.kept, found.digest) == ({part("a", 1).digest: part("a", 1).said}, request.digest)
        results.write(Outcome(found, 200, {}))
    assert not place.parts.exists()

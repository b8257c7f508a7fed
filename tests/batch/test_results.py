"""Results on disk: one for each request, whatever happened before."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lookup_spec.batch.lines import Line
from lookup_spec.batch.request import BadLine, Request, parse
from lookup_spec.batch.results import Outcome, Place, Results, claimed
from lookup_spec.errors import BusyJobError, OtherJobError, OutputError

FACTS = {"model": "tiny", "seed": 0}
ERROR = {"error": {"message": "no", "type": "x", "param": None, "code": "bad"}}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place.beside(tmp_path / "out.jsonl")


def lines(*asked: tuple[Any, str]) -> list[Line]:
    values = [{"custom_id": name, "url": "/v1/x", "body": {"prompt": text}} for name, text in asked]
    return [Line(number, json.dumps(value).encode()) for number, value in enumerate(values, 1)]


def work(place: Place, given: Iterable[Line], *, most: int = 1000, **options: Any) -> list[Request | BadLine]:
    """Answers requests with their own prompts, but for those that say no; returns what there was to do."""
    done = []
    with closing(Results(place, FACTS, **options)) as results:
        for found, _ in zip(results.unfinished(map(parse, given)), range(most), strict=False):
            done.append(found)
            if isinstance(found, BadLine):
                results.report(found)
            elif found.body["prompt"] == "no":
                results.write(Outcome(found, 400, ERROR))
            else:
                results.write(Outcome(found, 200, {"said": found.body["prompt"]}))
    return done


def read(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_answers_and_failures_have_openais_form(place: Place) -> None:
    work(place, lines(("ä\u2028", "one"), ("n", "no"), (7, "number")))
    [answer] = read(place.answers)
    assert (answer["custom_id"], answer["error"]) == ("ä\u2028", None)
    assert (answer["response"]["status_code"], answer["response"]["body"]) == (200, {"said": "one"})
    failure, bad = read(place.failures)
    assert (failure["custom_id"], failure["response"]["status_code"], failure["response"]["body"]) == ("n", 400, ERROR)
    assert failure["error"] == {"line": 2, "code": "bad", "message": "no", "param": None}
    assert (bad["custom_id"], bad["response"]) == (None, None)
    assert (bad["error"]["line"], bad["error"]["code"]) == (3, "invalid_custom_id")
    assert len({one["id"] for one in (answer, failure, bad)}) == 3


def test_nothing_is_done_twice(place: Place) -> None:
    """However the runs are cut, and if the input grows."""
    given = lines(("a", "one"), ("b", "no"), ("", "bad"), ("c", "three"))
    assert len(work(place, given[:3], most=1)) == 1
    assert len(work(place, given, most=2)) == 2
    assert len(work(place, given)) == 1
    assert work(place, given) == []
    assert [one["custom_id"] for one in read(place.answers)] == ["a", "c"]
    assert [one["custom_id"] for one in read(place.failures)] == ["b", None]


def test_a_name_has_one_result_and_other_lines_that_have_it_are_reported(place: Place) -> None:
    given = lines(("x", "one"), ("x", "two"), ("y", "three"), ("x", "one"))
    for _ in range(2):
        work(place, given)
        assert [(one["custom_id"], one["response"]["body"]["said"]) for one in read(place.answers)] == [
            ("x", "one"),
            ("y", "three"),
        ]
        failures = [one["error"] for one in read(place.failures)]
        assert [(error["line"], error["code"]) for error in failures] == [
            (2, "duplicate_custom_id"),
            (4, "duplicate_custom_id"),
        ]
        assert "of line 1" in failures[0]["message"]


def test_another_request_of_an_answered_name_is_reported_not_taken_for_it(place: Place) -> None:
    work(place, lines(("x", "one")))
    work(place, lines(("x", "other")))
    assert [one["error"]["code"] for one in read(place.failures)] == ["request_changed"]
    assert len(read(place.answers)) == 1


def test_failures_are_tried_again_if_asked_for(place: Place) -> None:
    """The old ones are put aside, and a line that was mended meanwhile has its answer."""
    work(place, lines(("a", "one"), ("b", "no"), ("c", "no")))
    assert work(place, lines(("a", "one"), ("b", "no"), ("c", "no"))) == []
    assert len(work(place, lines(("a", "one"), ("b", "two"), ("c", "no")), retry=True)) == 2
    assert [one["custom_id"] for one in read(place.answers)] == ["a", "b"]
    assert [one["custom_id"] for one in read(place.failures)] == ["c"]
    assert len(read(place.failures.with_name("out.errors.jsonl.old"))) == 2


def test_another_jobs_results_are_left_alone(place: Place) -> None:
    """And the refusal says what differs; where nothing was written yet, the new job may have the place."""
    given = lines(("a", "one"))
    work(place, given, most=0)
    other = {**FACTS, "model": "large"}
    Results(place, other).close()
    Results(place, FACTS).close()
    work(place, given)
    before = place.answers.read_bytes()
    with pytest.raises(OtherJobError, match="model was 'tiny', now 'large'"):
        Results(place, other)
    place.manifest.unlink()
    with pytest.raises(OtherJobError, match="does not tell of which job"):
        Results(place, FACTS)
    place.manifest.write_text("{}")
    with pytest.raises(OtherJobError, match="no manifest"):
        Results(place, FACTS)
    assert place.answers.read_bytes() == before


def test_a_file_that_holds_something_else_is_refused_by_its_line(place: Place) -> None:
    work(place, lines(("a", "one")))
    place.answers.write_bytes(place.answers.read_bytes() + b'{"note": 1}\n')
    with pytest.raises(OtherJobError, match="Line 2"):
        Results(place, FACTS)
    [line] = place.answers.read_bytes().splitlines(keepends=True)[:1]
    place.answers.write_bytes(line * 2)
    with pytest.raises(OtherJobError, match="second result for 'a'"):
        Results(place, FACTS)


def test_only_one_run_has_the_files(place: Place) -> None:
    with claimed(place), pytest.raises(BusyJobError, match=r"out\.lock"), claimed(place):
        pass
    with claimed(place):
        pass
    with pytest.raises(OutputError), claimed(Place.beside(place.answers.parent / "none" / "out")):
        pass

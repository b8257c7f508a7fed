"""Each request comes to exactly one end, however many workers are lost."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from lookup_spec.batch.dispatch import Dispatch
from lookup_spec.batch.in_order import InOrder
from lookup_spec.batch.parts import Part
from lookup_spec.batch.request import BadLine, Request
from lookup_spec.batch.results import Outcome

WORKERS = 3


def request(number: int) -> Request:
    return Request(number, f"r{number}", "/", {"n": number})


def answered(requests: Sequence[Request]) -> list[Outcome]:
    return [Outcome(one, 200, {}) for one in requests]


@given(st.integers(0, 1 << 32), st.integers(0, 12), st.sets(st.integers(0, 11), max_size=3), st.booleans())
def test_a_request_that_ends_its_workers_fails_and_all_others_are_answered(
    seed: int, count: int, deadly: set[int], keep_order: bool
) -> None:
    """Where no request does, two workers that end by themselves do no harm to anybody."""
    rng, order = Random(seed), InOrder()
    lines: list[Request | BadLine] = [request(number) for number in range(count)]
    lines.insert(count // 2, BadLine(99, "", "bad", "bad"))
    dispatch: Dispatch[int] = Dispatch(order.noting(lines))
    has: dict[int, list[Request]] = {}
    ended: list[Outcome] = []
    bad: list[BadLine] = []
    accidents = 0 if deadly else 2
    while True:
        worker = rng.randrange(WORKERS)
        fresh = rng.random() < 0.5 or not dispatch.held
        has.setdefault(worker, []).extend(dispatch.deal(worker, rng.randint(1, 4), fresh=fresh))
        assert len(has[worker]) == dispatch.has(worker) <= 4
        bad += dispatch.bad_lines()
        if dispatch.done:
            break
        accident = accidents > 0 and rng.random() < 0.5
        if accident or any(one.line in deadly for one in has[worker]):
            accidents -= accident
            has[worker] = []
            outcomes = dispatch.lose(worker)
        else:
            size = rng.randint(0, len(has[worker]))
            outcomes = dispatch.take(worker, answered(has[worker][:size]))
            del has[worker][:size]
        ended += order.put(outcomes) if keep_order else outcomes
    assert [one.line for one in bad] == [99]
    assert sorted(one.request.line for one in ended) == list(range(count))
    assert {one.request.line for one in ended if one.status != 200} == {n for n in deadly if n < count}
    if keep_order:
        assert [one.request.line for one in ended] == list(range(count))
        assert not len(order)


def test_a_request_that_was_lost_twice_goes_to_a_worker_by_itself() -> None:
    dispatch: Dispatch[str] = Dispatch(iter([request(1), request(2), request(3)]))
    assert [one.line for one in dispatch.deal("a", 2)] == [1, 2]
    assert not dispatch.lose("a")
    assert [one.line for one in dispatch.deal("b", 3)] == [1, 2, 3]
    assert not dispatch.lose("b")
    assert [one.line for one in dispatch.deal("c", 3)] == [1]
    assert dispatch.deal("c", 3) == []
    assert [one.line for one in dispatch.deal("d", 3)] == [2]
    [failed] = dispatch.lose("c")
    assert (failed.status, failed.request.line, failed.body["error"]["code"]) == (500, 1, "worker_lost")
    dispatch.take("d", answered([request(2)]))
    assert [one.line for one in dispatch.deal("d", 3)] == [3]


def test_what_a_lost_worker_had_finished_of_an_answer_goes_with_the_request() -> None:
    dispatch: Dispatch[str] = Dispatch(iter([request(1), request(2)]))
    dispatch.deal("a", 2)
    dispatch.keep("a", [Part("r2", "0" * 32, {"text": "one"}), Part("r2", "1" * 32, {"text": "two"})])
    dispatch.lose("a")
    assert [dict(one.kept) for one in dispatch.deal("b", 2)] == [
        {},
        {"0" * 32: {"text": "one"}, "1" * 32: {"text": "two"}},
    ]

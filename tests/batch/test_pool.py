"""Requests on an engine: the same answers as one by one, in whatever company."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from lookup_spec.batch.feeder import Feeder
from lookup_spec.batch.pool import Pool
from lookup_spec.batch.request import BadLine, Request
from lookup_spec.batch.results import Outcome
from lookup_spec.pipeline.engine import Engine
from tests.batch.echo import EchoApi
from tests.server.tiny_service import CONTEXT, tiny_model


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(tiny_model(), max_sessions=6)


def request(number: int, **body: Any) -> Request:
    return Request(number, f"r{number}", "/", {"texts": [f"def f{number}("], **body})


def run(pool: Pool, requests: list[Request | BadLine]) -> list[Outcome | BadLine]:
    return [outcome for outcomes in pool.run(requests) for outcome in outcomes]


@pytest.mark.parametrize("parallel", [1, 3, 6, None])
def test_answers_are_those_of_the_engine(engine: Engine, parallel: int | None) -> None:
    """Whatever runs beside them; several to a request keep their order."""
    rng = random.Random(parallel)
    requests = [
        request(number, texts=["a b c"[: rng.randint(1, 5)] for _ in range(rng.randint(1, 4))], max_tokens=number % 7)
        for number in range(10)
    ]
    pool = Pool(engine, EchoApi(engine), parallel)
    outcomes = run(pool, requests)
    assert len(outcomes) == 10
    for outcome in outcomes:
        assert isinstance(outcome, Outcome)
        body = outcome.request.body
        said = [engine.generate(text, max_tokens=body["max_tokens"]).text for text in body["texts"]]
        assert outcome.body == {"said": said}
    tokens = sum(one.request.body["max_tokens"] * len(one.request.body["texts"]) for one in outcomes)
    assert pool.cost.tokens == pool.cost.completion_tokens <= tokens
    assert pool.running == engine.load.running == 0


def test_work_may_take_several_steps(engine: Engine) -> None:
    """What is to be done next is made of what came."""
    [outcome] = run(Pool(engine, EchoApi(engine), 2), [request(1, again=2)])
    text = "def f1("
    for _ in range(3):
        text = engine.generate(text, max_tokens=8).text
    assert isinstance(outcome, Outcome)
    assert outcome.body == {"said": [text]}


def test_order_is_kept_if_asked_for(engine: Engine) -> None:
    """Though later requests are ready earlier, of which no more are held than a few."""
    lengths = [60, 1, 1, 30, 1, 1, 1, 1, 40, 1, 1, 1]
    requests = [request(number, max_tokens=length) for number, length in enumerate(lengths)]
    ordered = [outcome.request.line for outcome in run(Pool(engine, EchoApi(engine), 3, keep_order=True), requests)]
    assert ordered == sorted(ordered)
    unordered = [outcome.request.line for outcome in run(Pool(engine, EchoApi(engine), 3), requests)]
    assert sorted(unordered) == ordered != unordered


def test_a_failure_is_its_requests_own(engine: Engine) -> None:
    """In preparation, at the start, in the middle of several answers, or because the line says so."""
    bad = BadLine(5, "0" * 32, "invalid_json", "Line 5 is not JSON.")
    requests = [
        request(1),
        request(2, texts=[7]),
        request(3, texts=["a", "b" * 3 * CONTEXT]),
        Request(4, "r4", "", {}, "There is no url."),
        bad,
        request(6),
    ]
    outcomes = run(Pool(engine, EchoApi(engine), 2), requests)
    assert bad in outcomes
    status = {one.request.line: one.status for one in outcomes if isinstance(one, Outcome)}
    assert status == {1: 200, 2: 400, 3: 400, 4: 400, 6: 200}
    assert engine.load.running == engine.load.waiting == 0


def test_no_more_runs_than_may(engine: Engine) -> None:
    pool = Pool(engine, EchoApi(engine), 2)
    for _ in pool.run([request(number) for number in range(8)]):
        assert engine.load.running <= 2


def test_all_that_may_run_begin_in_the_same_step(engine: Engine) -> None:
    """Else answers of few tokens would never run together."""
    prepared = threading.Event()

    def some() -> Iterator[Request]:
        yield from (request(number) for number in range(8))
        prepared.set()

    pool = Pool(engine, EchoApi(engine), 4)
    with closing(pool.feeder(some())) as feeder:
        prepared.wait()
        steps = pool.work(feeder)
        next(steps)
        assert engine.load.waiting == 4
        next(steps)
        assert engine.load.running == 4
        steps.close()


def test_a_run_that_is_closed_leaves_nothing_behind(engine: Engine) -> None:
    def endless() -> Iterator[Request]:
        number = 0
        while True:
            number += 1
            yield request(number, max_tokens=100)

    pool = Pool(engine, EchoApi(engine), 4)
    steps = pool.run(endless())
    for _ in range(10):
        next(steps)
    steps.close()
    assert engine.load.running == engine.load.waiting == pool.running == 0
    assert not [thread for thread in threading.enumerate() if thread.name == "feeder"]


def test_input_that_cannot_be_read_ends_the_run(engine: Engine) -> None:
    def broken() -> Iterator[Request]:
        yield request(1)
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        run(Pool(engine, EchoApi(engine), 4), broken())  # type: ignore[arg-type]


def test_a_feeder_is_never_far_ahead() -> None:
    taken: list[int] = []
    feeder = Feeder(iter(range(100)), lambda item: taken.append(item) or item, 3)
    for expected in range(20):
        while (item := feeder.take(wait=True)) is None:
            pass
        assert item == expected
        assert len(taken) <= expected + 1 + 3 + 1
    feeder.close()

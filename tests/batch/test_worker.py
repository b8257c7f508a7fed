"""A worker answers as the engine alone does, and does not keep to itself what went wrong."""

from __future__ import annotations

import pytest

from lookup_spec.batch.request import Request
from lookup_spec.batch.results import Outcome
from lookup_spec.batch.station import Station
from lookup_spec.batch.worker import Worker
from lookup_spec.pipeline.engine import Engine
from tests.batch.echo import EchoApi
from tests.server.tiny_service import tiny_model


def station() -> Station:
    engine = Engine(tiny_model())
    return Station(engine, EchoApi(engine), {"model": "tiny"}, parallel=2)


def requests(count: int) -> list[Request]:
    return [Request(n, f"r{n}", "/", {"texts": [f"def f{n}("], "max_tokens": 3 + n}) for n in range(count)]


def test_a_worker_answers_what_its_engine_answers() -> None:
    """A few at a time, whenever it is asked; what it costs is told with it."""
    worker = Worker(station)
    assert worker.open() == {"model": "tiny"}
    asked, ended = requests(6), list[Outcome]()
    expected = {one.request.custom_id: one for step in station().pool().run(asked) for one in step}
    while len(ended) < 6:
        report = worker.exchange(asked[:2])
        del asked[:2]
        ended += report.outcomes
    assert {one.request.custom_id: one for one in ended} == expected
    assert (report.parallel, report.cost.completion_tokens) == (2, sum(3 + n for n in range(6)))
    assert not worker.exchange([]).outcomes
    worker.close()


def test_what_breaks_the_engine_is_told_to_whoever_asks_next(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Engine) -> bool:
        raise MemoryError("no memory")

    monkeypatch.setattr(Engine, "step", broken)
    worker = Worker(station)
    worker.open()
    with pytest.raises(MemoryError, match="no memory"):
        worker.exchange(requests(1))


def test_a_worker_can_be_closed_at_work() -> None:
    worker = Worker(station)
    worker.open()
    worker.exchange([Request(1, "long", "/", {"texts": ["def f("], "max_tokens": 500})])
    worker.close()
    assert not worker._thread.is_alive()

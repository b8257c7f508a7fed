"""The load benchmark on a tiny model: what it counts, and that it would notice a wrong answer."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from lookup_bench import cli
from lookup_bench.load import Job, jobs_of, percentile, sweep
from lookup_bench.tasks import Task, short_tasks
from typer.testing import CliRunner

from lookup_spec.pipeline.engine import Engine
from tests.server.tiny_service import tiny_model

TASKS = [
    Task("edit", "def add(a, b):\n    return a + b\n", "Rename add to plus.", "add.py"),
    Task("question", "", "for item in items: print", max_tokens=5),
]


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(tiny_model(), prefix_cache_bytes=0)


def test_every_number_of_clients_runs_with_and_without(engine: Engine) -> None:
    """Each client has all its requests answered, equal to those given alone, and nothing stays behind."""
    rows = sweep(engine, jobs_of(engine, TASKS, 9), [1, 3], requests=3, rounds=2, told=lambda _: None)
    assert [(row.clients, row.speculation) for row in rows] == [(1, False), (1, True), (3, False), (3, True)]
    assert [row.requests for row in rows] == [3, 3, 9, 9]
    assert {row.different for row in rows} == {0}
    for plain, fast in zip(rows[::2], rows[1::2], strict=True):
        assert plain.tokens == fast.tokens
        assert plain.drafted == 0
        assert fast.over_plain == pytest.approx(fast.tokens_per_second / plain.tokens_per_second)
    assert all(row.first_p50 <= row.first_p95 and row.gap_p50 <= row.gap_p95 for row in rows)
    assert engine.load.running == engine.load.waiting == engine.load.kept_tokens == 0


def test_a_wrong_answer_is_counted(engine: Engine) -> None:
    """Two requests of one name with different answers cannot both be right."""
    job, other = jobs_of(engine, TASKS, 9)
    rows = sweep(engine, [job, replace(other, name=job.name)], [1], requests=2, rounds=1, told=lambda _: None)
    assert [row.different for row in rows] == [1, 1]
    assert isinstance(job, Job)


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [([], 0.5, 0.0), ([3.0], 0.95, 3.0), ([4.0, 1.0, 3.0, 2.0], 0.5, 2.0), (list(range(100)), 0.95, 94)],
)
def testpercentiles(values: list[float], share: float, expected: float) -> None:
    """At least such a share of the values is no larger."""
    assert percentile(values, share) == expected


def test_the_default_tasks_are_short() -> None:
    """Edits of a few lines, and questions without a file."""
    tasks = short_tasks()
    assert {bool(task.text) for task in tasks} == {True, False}
    assert max(task.text.count("\n") for task in tasks) <= 24


def test_the_command_prints_a_table_and_writes_json(engine: Engine, monkeypatch, tmp_path) -> None:
    """One row for each number of clients, with speculation and without."""
    monkeypatch.setattr("lookup_spec.pipeline.engine.load_engine", lambda *_, **__: engine)
    out = tmp_path / "load.json"
    arguments = ["load", "--clients", "1,2", "--requests", "1", "--max-tokens", "4", "--json", str(out)]
    result = CliRunner().invoke(cli.app, arguments)
    assert result.exit_code == 0, result.output
    assert [row["clients"] for row in json.loads(out.read_text())] == [1, 1, 2, 2]
    assert CliRunner().invoke(cli.app, ["load", "--clients", "two"]).exit_code == 2

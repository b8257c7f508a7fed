"""The benchmark for GPUs, tried on a CPU with tiny models: what it counts, not what it times."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from lookup_bench import cli, gpu
from lookup_bench.e2e import Ours
from lookup_bench.gpu import Sizes, measure
from lookup_bench.layout import cases
from lookup_bench.records import Edit
from lookup_bench.tables import tables
from lookup_bench.tasks import Task, made_edits
from transformers import Qwen2Config
from typer.testing import CliRunner

from lookup_spec.model.load import LoadedModel
from lookup_spec.pipeline.engine import Engine
from tests.model.recorded import rerun
from tests.server.tiny_service import tiny_model

TASKS = [Task("edit", "def add(a, b):\n    return a + b\n", "Rename add to plus.", "add.py")]
EDIT = Edit("edit", "Rename add to plus.", TASKS[0].text, TASKS[0].text.replace("add", "plus"))
SIZES = Sizes(widths=(1, 4), contexts=(40, 200), repeats=1, max_tokens=12, draft=8)


def shapes() -> dict[str, Qwen2Config]:
    config = Qwen2Config(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        vocab_size=400, max_position_embeddings=8192,
    )  # fmt: skip
    return {"tiny": config}


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> LoadedModel:
    loaded = tiny_model()

    def systems(*_: object, **__: object) -> tuple[Engine, list[Ours]]:
        engine = Engine(tiny_model(), prefix_cache_bytes=0)
        return engine, [Ours(engine, False, "plain"), Ours(engine, True, "fast")]

    monkeypatch.setattr(gpu, "systems", systems)
    return loaded


def test_everything_is_measured_where_there_is_time(loaded: LoadedModel) -> None:
    """In float32 nothing flips; passes come at all widths and contexts; replayed edits yield their recorded tokens."""
    work = list(cases([EDIT], loaded.tokenizer.backend_tokenizer))
    report = measure(loaded, "", shapes(), TASKS, work, SIZES, lambda _: None)
    assert [(flip.tokens, flip.first_difference, flip.flips, flip.margins) for flip in report.flips] == [
        (12, None, 0, ())
    ]
    assert [(row.task, row.system, row.equal) for row in report.systems] == [
        ("edit", "plain", True), ("edit", "fast", True)
    ]  # fmt: skip
    assert [(row.context, row.width) for row in report.passes] == [(40, 1), (40, 4), (200, 1), (200, 4)]
    assert all(row.milliseconds > 0 for row in report.passes)
    (replayed,) = report.replayed
    assert replayed.tokens == len(work[0].answer)
    assert 1 <= replayed.passes <= replayed.tokens
    assert replayed.seconds > 0
    assert report.left_out == report.captured == ()


def test_where_graphs_can_be_captured_passes_are_measured_with_and_without(
    loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ways, the same widths, contexts and edits; and what capturing took."""
    monkeypatch.setattr(gpu, "capture_for", lambda _: rerun)
    work = list(cases([EDIT], loaded.tokenizer.backend_tokenizer))
    report = measure(loaded, "", shapes(), [], work, SIZES, lambda _: None)
    both = [(context, width) for context in SIZES.contexts for width in SIZES.widths]
    assert [(row.context, row.width) for row in report.passes if row.graphs] == both
    assert [(row.context, row.width) for row in report.passes if not row.graphs] == both
    assert [(row.graphs, row.edits, row.tokens) for row in report.replayed] == [
        (graphs, 1, len(work[0].answer)) for graphs in (True, False)
    ]
    [captured] = report.captured
    assert captured.graphs >= len(SIZES.widths)
    assert captured.seconds > 0
    assert any("graphs" in str(table.title) for table in tables(report))


def test_what_there_is_no_time_for_is_told(loaded: LoadedModel) -> None:
    report = measure(loaded, "", shapes(), TASKS, [], replace(SIZES, seconds=0.0), lambda _: None)
    assert report.left_out == ("flips of edit", "comparison of decoders", "shape tiny")
    assert report.flips == report.systems == report.passes == report.replayed == ()


def test_the_command_prints_tables_and_writes_json(
    loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("lookup_spec.model.load.load_model", lambda *_, **__: loaded)
    monkeypatch.setattr(gpu, "SHAPES", shapes())
    monkeypatch.setattr("lookup_bench.tasks.default_tasks", lambda: TASKS)
    monkeypatch.setattr("lookup_bench.tasks.made_edits", lambda: [EDIT])
    out = tmp_path / "out.json"
    arguments = [
        "gpu",
        "--device",
        "cpu",
        "--shapes",
        "tiny",
        "--widths",
        "1,2",
        "--context",
        "40",
        "--max-tokens",
        "4",
    ]
    ran = CliRunner().invoke(cli.app, [*arguments, "--max-tokens", "4", "--json", str(out)])
    assert ran.exit_code == 0, ran.output
    (report,) = json.loads(out.read_text())
    assert [row["width"] for row in report["passes"]] == [1, 2]
    assert "random weights" in ran.output


def test_an_unknown_shape_is_refused() -> None:
    ran = CliRunner().invoke(cli.app, ["gpu", "--shapes", "9T"])
    assert ran.exit_code != 0
    assert "9T" in str(ran.exception)


def test_edits_can_be_made_from_any_python() -> None:
    """Each changes something, and nothing but what it says."""
    edits = made_edits()
    assert all(edit.before != edit.after for edit in edits)
    assert [len(edit.after.splitlines()) for edit in edits] == [len(edit.before.splitlines()) for edit in edits]

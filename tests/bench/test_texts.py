"""Texts to summarize come from what every machine has."""

from __future__ import annotations

from pathlib import Path

from lookup_bench.texts import write_texts


def test_the_texts_are_the_same_each_time(tmp_path: Path) -> None:
    """Where there are no licences, the manual and the modules are there all the same."""
    counts = [write_texts(tmp_path / name) for name in ("a", "b")]
    files = [{path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("a", "b")]
    assert files[0] == files[1]
    assert len(files[0]) == counts[0]
    kinds = {name.partition("-")[0] for name in files[0]}
    assert {"manual", "module"} <= kinds

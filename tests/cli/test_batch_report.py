"""How far a job is can be read where it is shown."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from lookup_spec.batch.job import Progress
from lookup_spec.cli.batch_report import _Bar


@pytest.mark.parametrize("width", [50, 80, 200])
def test_a_terminal_of_any_usual_width_shows_how_many_are_done_and_how_long_it_takes(width: int) -> None:
    bar = _Bar()
    bar.show(
        Progress(
            answered=123_450, failed=6, total=1_000_000, running=128, seconds=3600.0, lines=123_456, tokens=9_999_999,
            lines_per_second=34.29, tokens_per_second=2777.8, tokens_per_forward=3.4, cached_share=0.5,
        )
    )  # fmt: skip
    shown = StringIO()
    Console(file=shown, width=width).print(bar.get_renderable())
    first, second, *rest = shown.getvalue().splitlines()
    assert "123,456 of 1,000,000, 7:06:03 left" in first
    assert second.startswith("6 failed, 34.29 lines/s, 2778 tokens/s")
    assert not any(rest)
    assert all(len(line) <= width for line in (first, second))

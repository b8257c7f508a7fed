"""How far a batch job is, for people and for logs."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

import typer
from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TextColumn
from rich.text import Text

if TYPE_CHECKING:
    from lookup_spec.batch.job import Ended
    from lookup_spec.batch.job import Progress as Standing

Show: TypeAlias = "Callable[[Standing], None]"

_LOG_SECONDS = {"lines": 10.0, "json": 2.0}


class Style(str, Enum):
    """How progress is shown on stderr."""

    AUTO = "auto"
    """A bar on a terminal, else lines."""
    BAR = "bar"
    LINES = "lines"
    JSON = "json"
    NONE = "none"


@contextmanager
def reporting(style: Style) -> Iterator[Show]:
    """What to call, as often as one likes, with where the job stands."""
    if style is Style.AUTO:
        style = Style.BAR if Console(stderr=True).is_terminal else Style.LINES
    if style is Style.BAR:
        with _Bar() as bar:
            yield bar.show
    elif style is Style.NONE:
        yield lambda _: None
    else:
        yield _logging(style)


def told(ended: Ended, output: str, errors: str) -> str:
    """What came of a run, in a sentence or two."""
    standing, failures = ended.progress, ended.failures
    said = f"{standing.answered:,} of {standing.total:,} lines are answered, in {output}."
    if standing.failed:
        said += f" {standing.failed:,} failed, in {errors}"
        said += f"; most often {failures.commonest}" if failures.commonest else "."
    if ended.stopped:
        said += " Stopped early; the same command goes on from here."
    return f"{said} This run: {standing.lines:,} lines in {_clock(standing.seconds)}{_speed(standing)}."


def end_event(ended: Ended) -> str:
    """The same for programs, as one line of JSON."""
    facts = {"stopped": ended.stopped, "failures": dict(ended.failures.counts)}
    return json.dumps({"event": "end", **ended.progress.as_dict(), **facts})


def _speed(standing: Standing) -> str:
    if not standing.tokens or not standing.seconds:
        return ""
    return (
        f", {standing.tokens / standing.seconds:.0f} tokens/s, {standing.tokens_per_forward:.1f} tokens per forward "
        f"pass, {standing.cached_share:.0%} of the prompts' tokens reused"
    )


def _logging(style: Style) -> Show:
    last = time.monotonic()

    def show(standing: Standing) -> None:
        nonlocal last
        if time.monotonic() - last < _LOG_SECONDS[style.value]:
            return
        last = time.monotonic()
        if style is Style.JSON:
            typer.echo(json.dumps({"event": "progress", **standing.as_dict()}), err=True)
        else:
            done = f"{standing.answered + standing.failed:,} of {standing.total:,} lines"
            typer.echo(", ".join(part for part in (done, _state(standing), _left(standing)) if part), err=True)
        sys.stderr.flush()

    return show


class _Bar(Progress):
    """A bar as wide as the terminal, and below it how it goes: that does not fit beside it."""

    def __init__(self) -> None:
        columns = (BarColumn(bar_width=None), TextColumn("{task.fields[done]}"))
        super().__init__(*columns, console=Console(stderr=True), transient=True, expand=True)
        self._task = self.add_task("", total=None, done="", state="")

    def show(self, standing: Standing) -> None:
        """Where the job stands."""
        ended = standing.answered + standing.failed
        left = f", {_left(standing)}" if _left(standing) else ""
        self.update(
            self._task,
            completed=ended,
            total=standing.total,
            done=f"{ended:,} of {standing.total:,}{left}",
            state=_state(standing),
        )

    def get_renderables(self) -> Iterator[RenderableType]:
        """What is drawn, from top to bottom."""
        yield from super().get_renderables()
        for task in self.tasks:
            yield Text(task.fields["state"], style="dim", no_wrap=True, overflow="ellipsis")


def _state(standing: Standing) -> str:
    parts = [
        f"{standing.failed:,} failed" if standing.failed else "",
        f"{standing.lines_per_second:.2f} lines/s",
        f"{standing.tokens_per_second:.0f} tokens/s",
        f"{standing.tokens_per_forward:.1f} per forward" if standing.tokens_per_forward else "",
        f"{standing.running} at once",
    ]
    return ", ".join(part for part in parts if part)


def _left(standing: Standing) -> str:
    eta = standing.eta_seconds
    return "" if eta is None else f"{_clock(eta)} left"


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))

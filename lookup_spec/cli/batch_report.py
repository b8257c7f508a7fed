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
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

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
        with _bar() as show:
            yield show
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
            typer.echo(f"{done}, {_state(standing)}", err=True)
        sys.stderr.flush()

    return show


@contextmanager
def _bar() -> Iterator[Show]:
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[state]}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, state="")

        def show(standing: Standing) -> None:
            done = standing.answered + standing.failed
            bar.update(task, completed=done, total=standing.total, state=_state(standing))

        yield show


def _state(standing: Standing) -> str:
    eta = standing.eta_seconds
    parts = [
        f"{standing.failed:,} failed" if standing.failed else "",
        f"{standing.lines_per_second:.2f} lines/s",
        f"{standing.tokens_per_second:.0f} tokens/s",
        f"{standing.tokens_per_forward:.1f} per forward" if standing.tokens_per_forward else "",
        f"{standing.running} at once",
        f"{_clock(eta)} left" if eta is not None else "",
    ]
    return ", ".join(part for part in parts if part)


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))

"""What a person watching sees: progress, a coloured diff, speed in one line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from lookup_spec.stats import Stats
from lookup_spec.text.diff import diff_lines

_STYLES = {"+++": "bold", "---": "bold", "@@": "cyan", "+": "green", "-": "red"}


def summary(stats: Stats) -> str:
    """What a finished request cost."""
    return (
        f"{stats.completion_tokens} tokens in {stats.prefill_seconds + stats.decode_seconds:.1f} s "
        f"({stats.prefill_seconds:.1f} s before the first), {stats.decode_tokens_per_second:.0f} tokens/s, "
        f"{stats.tokens_per_forward:.1f} tokens per forward pass"
    )


def print_diff(old: str, new: str, path: str) -> None:
    """A unified diff on stdout, coloured on a terminal."""
    console = Console(soft_wrap=True, highlight=False, markup=False, emoji=False)
    for line in diff_lines(old, new, path):
        if console.is_terminal:
            style = next((style for start, style in _STYLES.items() if line.startswith(start)), "")
            console.print(Text(line.rstrip("\n"), style))
        else:
            sys.stdout.write(line)
    sys.stdout.flush()


@contextmanager
def watching(name: str) -> Iterator[Callable[[int, int, Stats], None]]:
    """A live line on stderr, if that is a terminal.

    Yields:
        A function to call with the lines passed, the lines in all, and the cost so far.
    """
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("line {task.completed}/{task.total}"),
        TextColumn("{task.fields[speed]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(name, total=None, speed="reading the file")

        def show(line: int, lines: int, stats: Stats) -> None:
            speed = f"{stats.decode_tokens_per_second:.0f} tokens/s, {stats.tokens_per_forward:.1f} per forward"
            progress.update(task, completed=line, total=lines, speed=speed)

        yield show

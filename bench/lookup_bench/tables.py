"""Tables of what models gave end to end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.table import Table

if TYPE_CHECKING:
    from lookup_bench.e2e import Row
    from lookup_bench.gpu import Report


def e2e_table(rows: Sequence[Row]) -> Table:
    """Each system on each task."""
    table = Table(title="Decode phase, medians")
    for name in ("task", "system"):
        table.add_column(name)
    for name in ("tokens", "tokens/s", "speed-up", "tokens/forward"):
        table.add_column(name, justify="right")
    table.add_column("answer")
    for row in rows:
        table.add_row(
            row.task, row.system, str(row.tokens), f"{row.tokens_per_second:.1f}", f"{row.speedup:.2f}",
            f"{row.tokens_per_forward:.1f}", "equal" if row.equal else f"differs at {row.first_difference}",
        )  # fmt: skip
    return table


def tables(report: Report) -> Iterator[Table]:
    """A report, part by part."""
    yield _table(
        f"{report.device}, PyTorch {report.torch}: choices against plain decoding",
        ("task", "tokens", "with speculation", "flips in one pass", "largest margin of one"),
        [
            (
                flip.task, str(flip.tokens),
                "equal" if flip.first_difference is None else f"differs at {flip.first_difference}",
                str(flip.flips), f"{flip.margins[-1]:.3f}" if flip.margins else "",
            )
            for flip in report.flips
        ],
    )  # fmt: skip
    if report.systems:
        yield e2e_table(report.systems)
    yield _table(
        "Passes of models with random weights",
        ("shape", "graphs", "context", "rows", "ms", "over one row"),
        [
            (row.shape, _yes(row.graphs), f"{row.context:,}", str(row.width), f"{row.milliseconds:.2f}",
             f"{row.over_one:.2f}")
            for row in report.passes
        ],
    )  # fmt: skip
    yield _table(
        "Recorded edits, replayed with real passes of models with random weights",
        ("shape", "graphs", "edits", "tokens", "tokens/pass", "tokens/s", "over one token a pass"),
        [
            (row.shape, _yes(row.graphs), str(row.edits), str(row.tokens), f"{row.tokens / row.passes:.1f}",
             f"{row.tokens / row.seconds:.0f}", f"{row.speedup:.1f}")
            for row in report.replayed
        ],
    )  # fmt: skip
    if report.captured:
        yield _table(
            "Capturing graphs",
            ("shape", "graphs", "seconds"),
            [(row.shape, str(row.graphs), f"{row.seconds:.1f}") for row in report.captured],
        )


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _table(title: str, names: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(title=title)
    for number, name in enumerate(names):
        table.add_column(name, justify="right" if number else "left")
    for row in rows:
        table.add_row(*row)
    return table

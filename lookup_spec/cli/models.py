"""``lookup-spec models``: the embedded models and what this machine can do with them."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from lookup_spec.model.store import cache_root

if TYPE_CHECKING:
    from lookup_spec.model.overview import ModelRow


def models(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    dtype: Annotated[str, typer.Option(help="auto, bfloat16, float16 or float32.")] = "auto",
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
) -> None:
    """List the embedded models: installed or not, their size, the memory they need, and the default."""
    # Importing torch takes seconds, and other commands' help does not need it.
    from lookup_spec.model.overview import overview

    rows = overview(dtype, device)
    if as_json:
        typer.echo(json.dumps([asdict(row) for row in rows], indent=2))
        return
    console = Console()
    console.print(_table(rows))
    console.print(f"Converted weights are kept in {cache_root()}.", soft_wrap=True)
    console.print("Besides these, --model takes a Hugging Face id, a local directory, or a .gguf file.", soft_wrap=True)


def _table(rows: list[ModelRow]) -> Table:
    table = Table("Model", "File", f"Memory ({rows[0].dtype})", "Ready in", "Runs here", "Licence")
    for row in rows:
        table.add_row(
            f"{row.name} (default)" if row.default else row.name,
            f"{row.size / 1e9:.1f} GB",
            f"{row.memory / 1e9:.1f} GB",
            ", ".join(row.converted) or "-",
            "yes" if row.runs else f"no: {row.remark}",
            row.licence,
        )
    return table

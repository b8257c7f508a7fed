"""The ``lookup-spec`` command: one file a subcommand, and one place where errors become a line and an exit code."""

from __future__ import annotations

import signal
import sys

import typer
from lookup_bench.cli import app as bench

from lookup_spec._version import __version__
from lookup_spec.cli.batch import batch
from lookup_spec.cli.edit import edit
from lookup_spec.cli.exits import SIGNAL, exit_code
from lookup_spec.cli.generate import generate
from lookup_spec.cli.lsp import lsp
from lookup_spec.cli.models import models
from lookup_spec.cli.serve import serve
from lookup_spec.errors import LookupSpecError

app = typer.Typer(
    name="lookup-spec",
    help="Rewrites code with a language model, several times faster and with exactly the same answer: what is likely "
    "to come is looked up in the prompt and checked in one forward pass.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",  # in "rich" mode, what stands in square brackets is not shown
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(edit)
app.command()(generate)
app.command()(serve)
app.command()(lsp)
app.command()(models)
app.add_typer(batch, name="batch")
app.add_typer(bench, name="bench")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    del version


def main() -> None:
    """Runs the command line; every foreseen failure is one sentence on stderr and a non-zero exit."""
    try:
        app()
    except LookupSpecError as error:
        _fail(str(error), exit_code(error))
    except KeyboardInterrupt:
        _fail("Interrupted.", SIGNAL + signal.SIGINT)


def _fail(message: str, code: int) -> None:
    typer.echo(f"lookup-spec: {' '.join(message.split())}", err=True)
    sys.exit(code)

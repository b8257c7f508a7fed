"""``lookup-spec batch``: many requests from a file, answered into another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lookup_spec.cli import options
from lookup_spec.cli.batch_job import MOST_PARALLEL, Job, Model, Where
from lookup_spec.cli.batch_report import Style, end_event, reporting, told
from lookup_spec.cli.exits import SIGNAL, SOME_FAILED
from lookup_spec.errors import BatchError, LookupSpecError

if TYPE_CHECKING:
    from lookup_spec.batch.results import Place
    from lookup_spec.batch.summaries import Summarizing
    from lookup_spec.batch.texts import Source

_SUMMARY = 256  # tokens
_REQUESTS, _SUMMARIES, _CLUSTER = "For requests that do not say", "With --summarize", "On a Ray cluster"

batch = typer.Typer(no_args_is_help=True)


@batch.callback()
def _batch() -> None:
    """Works through many requests from a file, each answered exactly once, whatever interrupts the work."""


@batch.command()
def run(
    source: Annotated[
        str,
        typer.Argument(
            help='Requests, one a line, in the form of OpenAI\'s batches: {"custom_id": …, "method": "POST", '
            '"url": "/v1/chat/completions", "body": {…}}. With --summarize: texts.',
            metavar="INPUT",
        ),
    ],
    output: Annotated[
        Path,
        typer.Argument(
            help="Where the answers go, one a line, in the order in which they are ready; each has its request's "
            "custom_id. Beside OUTPUT.jsonl lie OUTPUT.errors.jsonl, OUTPUT.manifest.json, OUTPUT.lock and, while long "
            "texts are unfinished, OUTPUT.parts.jsonl.",
            metavar="OUTPUT",
        ),
    ],
    model: options.Model = None,
    served_model_name: Annotated[
        list[str] | None,
        typer.Option(
            help="What requests call the model; may be given several times. A request for another model fails.  "
            "[default: the model's own name]",
            show_default=False,
        ),
    ] = None,
    dtype: options.DType = "auto",
    device: options.Device = "auto",
    calibration: options.Calibration = None,
    no_speculation: options.NoSpeculation = False,
    max_parallel: Annotated[
        str,
        typer.Option(help="Answers at the same time; auto finds out how many give the most tokens per second."),
    ] = "auto",
    keep_order: Annotated[bool, typer.Option("--keep-order", help="Write answers in the order of the input.")] = False,
    retry_errors: Annotated[
        bool, typer.Option("--retry-errors", help="Try again what failed before; the old errors are put aside.")
    ] = False,
    errors: Annotated[
        Path | None,
        typer.Option(help="Where failures go.  [default: OUTPUT.errors.jsonl]", show_default=False),
    ] = None,
    progress: Annotated[
        Style, typer.Option(help="On stderr: a bar, lines or JSON lines for logs, or none; auto is a bar or lines.")
    ] = Style.AUTO,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
    temperature: Annotated[
        float | None,
        options.TEMPERATURE.option("1, as OpenAI's; for summaries 0", panel=_REQUESTS),
    ] = None,
    max_tokens: Annotated[
        int | None,
        options.MAX_TOKENS.option("16 for completions, 256 for summaries, no limit for chats", panel=_REQUESTS),
    ] = None,
    seed: Annotated[
        int,
        options.SEED.option(also="Each request gets one made of this and its text.", panel=_REQUESTS),
    ] = 0,
    summarize: Annotated[
        bool,
        typer.Option(
            "--summarize",
            help="Summarize texts: INPUT is a folder, a pattern like 'docs/**/*.md', a file, or a table (JSONL, CSV, "
            "Parquet). Long ones are summarized in parts.",
            rich_help_panel=_SUMMARIES,
        ),
    ] = False,
    column: Annotated[str | None, typer.Option(help="Where a table's texts are.", rich_help_panel=_SUMMARIES)] = None,
    id_column: Annotated[
        str | None,
        typer.Option(
            help="Where a table's names are.  [default: numbers]", show_default=False, rich_help_panel=_SUMMARIES
        ),
    ] = None,
    template: Annotated[
        Path | None,
        typer.Option(
            help="A file with the question, a Jinja template of text, name, part, parts and joining; `lookup-spec "
            "batch template` prints the one that is used otherwise.",
            rich_help_panel=_SUMMARIES,
        ),
    ] = None,
    part_tokens: Annotated[
        int, typer.Option(min=64, help="Most tokens of a text to summarize in one go.", rich_help_panel=_SUMMARIES)
    ] = 4096,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Run on a cluster, an engine on each GPU: auto finds one that runs here or that RAY_ADDRESS names, "
            "local starts one on this machine, HOST:PORT is its head. Results are written here. The same packages, and "
            "a --model that is a directory, must be on all machines.",
            rich_help_panel=_CLUSTER,
        ),
    ] = None,
    ray_cpus: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="CPUs of each engine.  [default: one beside a GPU; without GPUs, all of the smallest machine]",
            show_default=False,
            rich_help_panel=_CLUSTER,
        ),
    ] = None,
) -> None:
    """Answers every request of a file into another file.

    Run the same command again after an interruption, a crash or a loss of power, and it goes on where it was: each
    request has exactly one line in the answers or in the errors. The input may have grown meanwhile.

    Exit codes: 0 every line is answered, 3 some failed, 4 results cannot be written, 5 the output is another job's,
    6 another run is at work on it, 130 or 143 interrupted, 1 anything else.
    """
    _check_packages()
    from lookup_spec.batch.results import claimed

    asked = Model(
        spec=str(Path(model).resolve()) if model and Path(model).exists() else model,
        dtype=dtype,
        device=device,
        calibration=options.calibration_directory(calibration),
        parallel=_parallel(max_parallel),
        names=served_model_name or (),
        temperature=(0.0 if summarize else 1.0) if temperature is None else temperature,
        max_tokens=max_tokens,
        seed=seed,
        speculation=not no_speculation,
        summarizing=_summarizing(template, max_tokens, part_tokens) if summarize else None,
    )
    place = _place(Path(source), output, errors)
    style = Style.NONE if quiet else progress
    with _source(source, summarize, column, id_column) as requests, claimed(place), reporting(style) as show:
        job = Job(source, requests, place, keep_order, retry_errors)
        ended, number = job.run(asked, Where(ray, ray_cpus), show)
    if style is Style.JSON:
        typer.echo(end_event(ended), err=True)
    elif not quiet:
        typer.echo(told(ended, str(place.answers), str(place.failures)), err=True)
    if number:
        raise typer.Exit(SIGNAL + number)
    if ended.progress.failed:
        raise typer.Exit(SOME_FAILED)


@batch.command("template")
def show_template() -> None:
    """Prints the question that --summarize asks, as a template to change."""
    from lookup_spec.batch.summary_template import default_template

    typer.echo(default_template(), nl=False)


def _check_packages() -> None:
    try:
        import lookup_server.openai.batch_lines  # noqa: F401 - only whether it can be
    except ModuleNotFoundError as error:
        raise LookupSpecError(
            f"Batch jobs need the package {error.name}; install it with: pip install 'lookup-spec[server]'"
        ) from error


def _parallel(value: str) -> int | None:
    if value == "auto":
        return None
    if value.isascii() and value.isdecimal() and 0 < int(value) <= MOST_PARALLEL:
        return int(value)
    raise LookupSpecError(f"--max-parallel is {value!r}; give auto or a number from 1 to {MOST_PARALLEL}.")


def _place(source: Path, output: Path, errors: Path | None) -> Place:
    from lookup_spec.batch.results import Place

    place = Place.beside(output, errors)
    files = (source, place.answers, place.failures, place.parts, place.manifest, place.lock)
    if len({path.resolve() for path in files}) < len(files):
        raise BatchError(
            "Input, output and errors must be different files, and none of those beside the output either."
        )
    return place


def _summarizing(template: Path | None, max_tokens: int | None, part_tokens: int) -> Summarizing:
    from lookup_spec.batch.summaries import Summarizing
    from lookup_spec.batch.summary_template import SummaryTemplate

    return Summarizing(SummaryTemplate.read(template), _SUMMARY if max_tokens is None else max_tokens, part_tokens)


@contextmanager
def _source(source: str, summarize: bool, column: str | None, id_column: str | None) -> Iterator[Source]:
    from lookup_spec.batch.request import Lines
    from lookup_spec.batch.texts import texts

    if summarize:
        yield texts(source, column, id_column)
        return
    if column or id_column:
        raise BatchError("--column and --id-column go with --summarize only.")
    try:
        file = Path(source).open("rb")  # noqa: SIM115 - errors in the block below are not this one's
    except OSError as error:
        raise BatchError(f"Cannot read {source}: {error.strerror}.") from error
    with file:
        if not file.seekable():
            raise BatchError(f"{source} cannot be read twice, which going on after an interruption needs.")
        yield Lines(file)

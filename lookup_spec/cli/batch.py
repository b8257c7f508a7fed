"""``lookup-spec batch``: many requests from a file, answered into another."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from lookup_spec.cli import options
from lookup_spec.cli.batch_report import Style, end_event, reporting, told
from lookup_spec.cli.exits import SIGNAL, SOME_FAILED
from lookup_spec.errors import BatchError, LookupSpecError

if TYPE_CHECKING:
    from lookup_spec.batch.results import Place
    from lookup_spec.batch.summaries import Summarizing
    from lookup_spec.batch.texts import Source
    from lookup_spec.batch.work import Api
    from lookup_spec.pipeline.engine import Engine

_MOST_PARALLEL = 256  # what "auto" may come to
_SUMMARY = 256  # tokens

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
            "custom_id. Beside OUTPUT.jsonl lie OUTPUT.errors.jsonl, OUTPUT.manifest.json and OUTPUT.lock.",
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
    summarize: Annotated[
        bool,
        typer.Option(
            "--summarize",
            help="Summarize texts instead: INPUT is a folder, a pattern like 'docs/**/*.md', a file, or a table "
            "(JSONL, CSV, Parquet). Long ones are summarized in parts.",
        ),
    ] = False,
    column: Annotated[str | None, typer.Option(help="With --summarize: where a table's texts are.")] = None,
    id_column: Annotated[
        str | None, typer.Option(help="With --summarize: where a table's names are.  [default: numbers]")
    ] = None,
    template: Annotated[
        Path | None,
        typer.Option(
            help="With --summarize: a file with the question, a Jinja template of text, name, part, parts and joining; "
            "`lookup-spec batch template` prints the one that is used otherwise."
        ),
    ] = None,
    part_tokens: Annotated[
        int, typer.Option(min=64, help="With --summarize: most tokens of a text to summarize in one go.")
    ] = 4096,
    temperature: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="For requests that name none; 0 takes the likeliest.  [default: 1, as OpenAI's; for summaries 0]",
            show_default=False,
        ),
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="For requests that name none.  [default: 16 for completions, 256 for summaries, no limit for chats]",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            min=0,
            help="Requests without a seed get one made of this and their text: run again, they have the same answers.",
        ),
    ] = 0,
    no_speculation: options.NoSpeculation = False,
    progress: Annotated[
        Style, typer.Option(help="On stderr: a bar, lines or JSON lines for logs, or none; auto is a bar or lines.")
    ] = Style.AUTO,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
    dtype: options.DType = "auto",
    device: options.Device = "auto",
    calibration: options.Calibration = None,
) -> None:
    """Answers every request of a file into another file.

    Run the same command again after an interruption, a crash or a loss of power, and it goes on where it was: each
    request has exactly one line in the answers or in the errors. The input may have grown meanwhile.

    Exit codes: 0 every line is answered, 3 some failed, 4 results cannot be written, 5 the output is another job's,
    6 another run is at work on it, 130 or 143 interrupted, 1 anything else.
    """
    try:
        from lookup_server.openai.batch_lines import BatchApi, Defaults
    except ModuleNotFoundError as error:
        raise LookupSpecError(
            f"Batch jobs need the package {error.name}; install it with: pip install 'lookup-spec[server]'"
        ) from error
    from lookup_spec.batch.job import run_job
    from lookup_spec.batch.order import alike_together
    from lookup_spec.batch.pool import Pool
    from lookup_spec.batch.results import Results, claimed

    parallel = _parallel(max_parallel)
    place = _place(Path(source), output, errors)
    style = Style.NONE if quiet else progress
    temperature = (0.0 if summarize else 1.0) if temperature is None else temperature
    summarizing = _summarizing(template, max_tokens, part_tokens) if summarize else None
    with _source(source, summarize, column, id_column) as requests, claimed(place):
        total = requests.count()
        if not total:
            raise BatchError(f"There is nothing to do in {source}; give requests, or with --summarize texts.")
        with _engine(model, dtype, device, calibration, parallel) as (engine, known):
            names = served_model_name or [engine.model_name]
            defaults = Defaults(temperature, max_tokens, seed, speculation=not no_speculation)
            api: Api = BatchApi(engine, names, defaults)
            facts = {
                **known,
                "input": Path(source).name,  # it may grow and move, but another input is another job
                "temperature": temperature,
                "max_tokens": max_tokens,
                "seed": seed,
                "keep_order": keep_order,
            }
            if summarizing is not None:
                api = summarizing.api(engine, api)
                facts |= summarizing.facts
            results = Results(place, facts, retry=retry_errors)
            with closing(results), _stopping() as stopped, reporting(style) as show:
                pool = Pool(engine, api, parallel, keep_order=keep_order)
                left = results.unfinished(requests.requests())
                left = left if keep_order else alike_together(left)
                ended = run_job(pool, left, results, total, show=show, stopping=lambda: bool(stopped))
    if style is Style.JSON:
        typer.echo(end_event(ended), err=True)
    elif not quiet:
        typer.echo(told(ended, str(place.answers), str(place.failures)), err=True)
    if stopped:
        raise typer.Exit(SIGNAL + stopped[0])
    if results.failed:
        raise typer.Exit(SOME_FAILED)


@batch.command("template")
def show_template() -> None:
    """Prints the question that --summarize asks, as a template to change."""
    from lookup_spec.batch.summary_template import default_template

    typer.echo(default_template(), nl=False)


def _parallel(value: str) -> int | None:
    if value == "auto":
        return None
    if value.isascii() and value.isdecimal() and 0 < int(value) <= _MOST_PARALLEL:
        return int(value)
    raise LookupSpecError(f"--max-parallel is {value!r}; give auto or a number from 1 to {_MOST_PARALLEL}.")


def _place(source: Path, output: Path, errors: Path | None) -> Place:
    from lookup_spec.batch.results import Place

    place = Place.beside(output, errors)
    if len({path.resolve() for path in (source, place.answers, place.failures, place.manifest, place.lock)}) < 5:
        raise BatchError("Input, output and errors must be different files, and not the manifest or the lock either.")
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


@contextmanager
def _engine(
    model: str | None, dtype: str, device: str, calibration: str | None, parallel: int | None
) -> Iterator[tuple[Engine, dict[str, str | int | float | bool | None]]]:
    """The engine, and what there is to know about its model."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    from lookup_spec.model.identity import identity
    from lookup_spec.model.load import load_model
    from lookup_spec.pipeline.engine import Engine

    loaded = load_model(model, dtype=dtype, device=device, progress=lambda text: typer.echo(text, err=True))
    facts: dict[str, str | int | float | bool | None] = {"model": loaded.name, "weights": identity(loaded)}
    engine = Engine(
        loaded,
        max_sessions=parallel or _MOST_PARALLEL,
        calibration=options.calibration_directory(calibration),
    )
    with closing(engine):
        yield engine, facts


@contextmanager
def _stopping() -> Iterator[list[int]]:
    """A list that gets the number of a signal to stop. The second signal interrupts whatever is going on."""
    came: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        if came:
            raise KeyboardInterrupt
        came.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

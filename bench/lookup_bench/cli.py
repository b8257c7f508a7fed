"""``lookup-spec bench``: the commands."""

from __future__ import annotations

import importlib.util
import json
import sys
from dataclasses import asdict, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from lookup_spec.errors import LookupSpecError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tokenizers import Tokenizer

    from lookup_bench.cost import Cost
    from lookup_bench.e2e import Row
    from lookup_bench.gpu import Report
    from lookup_bench.layout import Case
    from lookup_bench.load import Row as LoadRow
    from lookup_bench.records import Edit
    from lookup_bench.replay import Contestant, Figures
    from lookup_bench.streams import Report as StreamsReport
    from lookup_spec.propose.prompt import Prompt

app = typer.Typer(
    name="bench",
    help="Measures what speculation brings, on recorded edits and on this machine.",
    no_args_is_help=True,
)

DEFAULT_MODEL = "qwen2.5-coder-0.5b-instruct"


class Grouping(str, Enum):
    """What tells groups of edits apart."""

    LANGUAGE = "language"
    REPO = "repo"


class Answers(str, Enum):
    """What a model is asked."""

    FREE = "free"
    FILL = "fill"


@app.command()
def replay(
    edits: Annotated[
        list[Path] | None, typer.Option(help="JSON Lines files of edits: instruction, before, after.")
    ] = None,
    git: Annotated[Path | None, typer.Option(help="Take edits from this git repository's single-file commits.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Most edits taken from git.")] = 200,
    workspace: Annotated[
        list[Path] | None, typer.Option(help="Files that the client sends along with every edit.")
    ] = None,
    model: Annotated[
        str, typer.Option(help="Whose tokenizer: a tokenizer.json, a directory, or an embedded model's name.")
    ] = DEFAULT_MODEL,
    width: Annotated[str, typer.Option(help="Drafted nodes per step, one or several: 8,16,32,64.")] = "8,16,32,64",
    by: Annotated[Grouping | None, typer.Option(help="Also show what comes of each language or project.")] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(
            help="Also run ours without these, by name as in the stats: answer,near; or counts. May be repeated."
        ),
    ] = None,
    json_path: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file.")] = None,
) -> None:
    """Counts forward passes per answer when recorded edits are replayed through proposers. No model runs.

    With --by or --without, only ours and the oracle run.
    """
    try:
        rows = _replay(
            edits or [], git, limit, workspace or [], model, _numbers(width, "--width", "widths", "8,16,32,64"), by,
            without or [],
        )  # fmt: skip
        if json_path is not None:
            _write(json_path, rows)
    except LookupSpecError as error:
        typer.echo(f"lookup-spec bench replay: {' '.join(str(error).split())}", err=True)
        raise typer.Exit(1) from None
    Console().print(_table(rows) if by is None and not without else _wide_table(rows))


@app.command()
def propose(
    edits: Annotated[
        list[Path] | None, typer.Option(help="JSON Lines files of edits: instruction, before, after.")
    ] = None,
    git: Annotated[Path | None, typer.Option(help="Take edits from this git repository's single-file commits.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Most edits taken from git.")] = 200,
    sample: Annotated[int, typer.Option(min=1, help="Edits replayed in each context.")] = 12,
    context: Annotated[str, typer.Option(help="Tokens around each edit, one or several.")] = "2000,20000,100000",
    size: Annotated[int, typer.Option(min=1000, help="Tokens of each text that is hard to index.")] = 64_000,
    model: Annotated[
        str, typer.Option(help="Whose tokenizer: a tokenizer.json, a directory, or an embedded model's name.")
    ] = DEFAULT_MODEL,
    width: Annotated[int, typer.Option(min=1, help="Drafted nodes per step.")] = 64,
    rounds: Annotated[int, typer.Option(min=1, help="Of each step the quickest of so many runs counts.")] = 5,
    json_path: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file.")] = None,
) -> None:
    """Measures what proposing costs: time a step, indexing, memory; in short and long contexts and in hard texts."""
    from lookup_bench.cost import table

    contexts = _numbers(context, "--context", "token counts", "2000,20000,100000")
    try:
        rows = _costs(_records(edits or [], git, limit), contexts, sample, size, model, width, rounds)
        if json_path is not None:
            _write(json_path, rows)
    except LookupSpecError as error:
        typer.echo(f"lookup-spec bench propose: {' '.join(str(error).split())}", err=True)
        raise typer.Exit(1) from None
    Console().print(table(rows))


@app.command()
def calibrate(
    out: Annotated[Path, typer.Option(help="Where the counts go, as JSON.")],
    edits: Annotated[
        list[Path] | None, typer.Option(help="JSON Lines files of edits: instruction, before, after.")
    ] = None,
    answers: Annotated[
        Answers | None, typer.Option(help="Count on answers of the model instead, to questions or to gaps in files.")
    ] = None,
    model: Annotated[
        str, typer.Option(help="For edits a tokenizer.json will do, too; else as for `lookup-spec edit`.")
    ] = DEFAULT_MODEL,
) -> None:
    """Counts on recorded edits, or on a model's answers, which guesses come true, for proposers to start from."""
    from lookup_bench.calibrate import answered
    from lookup_bench.calibrate import calibrate as count
    from lookup_bench.layout import cases
    from lookup_bench.tokenizer import open_tokenizer
    from lookup_spec.model.load import load_model
    from lookup_spec.propose.counts import dumps

    if bool(edits) == (answers is not None):
        raise typer.BadParameter("Give one of --edits and --answers.")
    try:
        if answers is None:
            tokenizer = open_tokenizer(model)
            counts = count(cases(_records(edits or [], None, 0), tokenizer), tokenizer)
        else:
            with Progress(console=Console(file=sys.stderr), transient=True) as progress:
                bar = progress.add_task("")
                counts = answered(
                    load_model(model),
                    "free" if answers is Answers.FREE else "fill",
                    lambda done, most: progress.update(bar, completed=done, total=most),
                )
        out.write_text(dumps(counts, {}), encoding="utf-8")
    except (LookupSpecError, OSError) as error:
        typer.echo(f"lookup-spec bench calibrate: {' '.join(str(error).split())}", err=True)
        raise typer.Exit(1) from None


@app.command()
def e2e(
    model: Annotated[str, typer.Option(help="As for `lookup-spec edit`.")] = DEFAULT_MODEL,
    tasks: Annotated[
        Path | None, typer.Option(help="JSON Lines of tasks: name, instruction, and file, module or text.")
    ] = None,
    compare: Annotated[
        str,
        typer.Option(
            help="Others to run: transformers, prompt-lookup-10, vllm, vllm-ngram-20, vllm-suffix-32, llama.cpp, "
            "llama.cpp-lookup-10, …"
        ),
    ] = "transformers,prompt-lookup-10",
    vllm: Annotated[Path | None, typer.Option(help="A virtual environment that has vLLM, to compare with it.")] = None,
    llama: Annotated[
        Path | None, typer.Option(help="One that has llama-cpp-python; it reads the model's GGUF file.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Counted runs of each task; figures are medians.")] = 3,
    max_tokens: Annotated[int, typer.Option(min=1, help="Most tokens of an answer.")] = 2048,
    dtype: Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.")] = "auto",
    json_path: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file.")] = None,
) -> None:
    """Decodes the same prompts with the same weights in several ways, one after the other in each round."""
    from lookup_bench.e2e import compare as run
    from lookup_bench.e2e import systems
    from lookup_bench.tables import e2e_table
    from lookup_bench.tasks import default_tasks, read_tasks

    work = default_tasks() if tasks is None else read_tasks(tasks)
    engine, decoders = systems(model, dtype, compare, vllm=vllm, llama=llama)
    with Progress(console=Console(file=sys.stderr), transient=True) as progress:
        bar = progress.add_task("", total=len(work) * rounds + len(decoders))
        rows = run(
            decoders, work, engine, rounds, max_tokens, lambda text: progress.update(bar, description=text, advance=1)
        )
    if json_path is not None:
        _write(json_path, rows)
    Console().print(e2e_table(rows))


@app.command()
def load(
    clients: Annotated[str, typer.Option(help="Requests under way at a time, one or several numbers.")] = (
        "1,2,4,8,16,32"
    ),
    model: Annotated[str, typer.Option(help="As for `lookup-spec edit`.")] = DEFAULT_MODEL,
    tasks: Annotated[
        Path | None, typer.Option(help="JSON Lines of tasks: name, instruction, and file, module or text.")
    ] = None,
    requests: Annotated[int, typer.Option(min=1, help="Requests of each client, one after the other.")] = 2,
    max_tokens: Annotated[int, typer.Option(min=1, help="Most tokens of an answer.")] = 128,
    rounds: Annotated[int, typer.Option(min=1, help="Counted runs of each number of clients.")] = 1,
    dtype: Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.")] = "auto",
    json_path: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file.")] = None,
) -> None:
    """Lets many clients edit and ask at the same time, with speculation and without, in an engine of its own."""
    from lookup_bench.load import jobs_of, sweep
    from lookup_bench.tasks import read_tasks, short_tasks
    from lookup_spec.pipeline.engine import load_engine

    numbers = _numbers(clients, "--clients", "numbers of clients", "1,2,4,8,16,32")
    work = short_tasks() if tasks is None else read_tasks(tasks)
    engine = load_engine(model, dtype=dtype, max_sessions=max(numbers), prefix_cache_bytes=0)
    with Progress(console=Console(file=sys.stderr), transient=True) as progress:
        bar = progress.add_task("", total=2 * rounds * len(numbers) + 1)
        rows = sweep(
            engine, jobs_of(engine, work, max_tokens), numbers, requests, rounds,
            lambda text: progress.update(bar, description=text, advance=1),
        )  # fmt: skip
    if json_path is not None:
        _write(json_path, rows)
    Console().print(_load_table(rows))


@app.command()
def streams(
    url: Annotated[str, typer.Option(help="Where the service is.")] = "http://127.0.0.1:8012",
    clients: Annotated[int, typer.Option(min=1, help="Edit streams at a time.")] = 32,
    seconds: Annotated[float, typer.Option(min=0, help="After this time no new stream is begun.")] = 120.0,
    key: Annotated[str | None, typer.Option(envvar="LOOKUP_SPEC_API_KEY", help="For the service.")] = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="Most tokens of an answer.")] = 256,
    pid: Annotated[
        int | None, typer.Option(help="The service's process, where it is on this machine: its memory is told, too.")
    ] = None,
    json_path: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file.")] = None,
) -> None:
    """Presses a running service with many edit streams for a while: none may be lost, or differ from the same edit
    made alone."""
    from lookup_bench.streams import press
    from lookup_bench.tasks import short_tasks

    work = [task for task in short_tasks() if task.text]
    said = Console(stderr=True)
    report = press(url, work, clients, seconds, key=key, most=max_tokens, pid=pid, told=said.print)
    if json_path is not None:
        _write(json_path, [report])
    out = Console()
    out.print(f"{report.clients} streams at a time for {report.seconds:.0f} s: {report.streams} complete, ", end="")
    out.print(f"{report.lost} lost, {report.garbled} garbled, {report.tokens / report.seconds:.1f} tokens per second")
    out.print(f"first hunk after {report.first_p50:.2f} s (median), {report.first_p95:.2f} s (95th percentile)")
    if report.resident_bytes:
        out.print("memory in MB:", *(round(held / 1e6) for held in report.resident_bytes))
    for reason in report.reasons:
        out.print(f"lost: {reason}")
    if report.lost or report.garbled:
        raise typer.Exit(1)


@app.command()
def gpu(
    model: Annotated[str, typer.Option(help="The real model, as for `lookup-spec edit`.")] = DEFAULT_MODEL,
    edits: Annotated[
        list[Path] | None,
        typer.Option(help="JSON Lines files of edits to replay: instruction, before, after.  [default: made ones]"),
    ] = None,
    shapes: Annotated[str, typer.Option(help="Models of random weights that passes are timed with.")] = "0.5B,7B",
    compare: Annotated[str, typer.Option(help="Other decoders for the real model, as for `e2e`.")] = (
        "transformers,transformers-static,prompt-lookup-10,prompt-lookup-64"
    ),
    dtype: Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.")] = "auto",
    device: Annotated[str, typer.Option(help="cuda, or cpu to try it out.")] = "cuda",
    widths: Annotated[str, typer.Option(help="Rows of timed passes.")] = "1,2,4,8,16,32,64,128",
    context: Annotated[str, typer.Option(help="Tokens of context of timed passes.")] = "512,4096,16384",
    max_tokens: Annotated[int, typer.Option(min=2, help="Most tokens of an answer.")] = 256,
    seconds: Annotated[float, typer.Option(min=1, help="After so long nothing further is begun.")] = 400,
    json_path: Annotated[Path | None, typer.Option("--json", help="Write everything to this file.")] = None,
) -> None:
    """Measures what only a GPU can tell: near-ties that fall differently, passes by width, replayed edits, others."""
    from lookup_bench.gpu import SHAPES, Sizes, measure
    from lookup_bench.layout import cases
    from lookup_bench.records import RecordError, read_edits
    from lookup_bench.tables import tables
    from lookup_bench.tasks import default_tasks, made_edits
    from lookup_spec.model.load import load_model

    named = [name.strip() for name in shapes.split(",") if name.strip()]
    if unknown := [name for name in named if name not in SHAPES]:
        raise RecordError(f"There is no shape {unknown[0]!r}; give some of {', '.join(SHAPES)}.")
    numbers = _numbers(widths, "--widths", "widths", "1,8,64")
    sizes = Sizes(
        numbers, _numbers(context, "--context", "token counts", "512,4096"), max_tokens=max_tokens, seconds=seconds
    )
    loaded = load_model(model, dtype=dtype, device=device)
    records = [edit for path in edits or [] for edit in read_edits(path)] or made_edits()
    with Progress(console=Console(file=sys.stderr), transient=True) as progress:
        bar = progress.add_task("", total=None)
        report = measure(
            loaded, compare, {name: SHAPES[name] for name in named}, default_tasks(),
            list(cases(records, loaded.tokenizer.backend_tokenizer)), sizes,
            lambda text: progress.update(bar, description=text),
        )  # fmt: skip
    if json_path is not None:
        _write(json_path, [report])
    for table in tables(report):
        Console().print(table)
    if report.left_out:
        Console().print(f"No time was left for: {', '.join(report.left_out)}.")


@app.command()
def texts(folder: Annotated[Path, typer.Argument(help="Where they go.")]) -> None:
    """Writes fifty texts of this machine to summarize: licences, pages of Python's manual, and modules."""
    from lookup_bench.texts import write_texts

    typer.echo(f"{write_texts(folder)} texts in {folder}")


@app.command()
def picture(
    file: Annotated[Path, typer.Argument(help="The file to edit; it is not changed.")],
    instruction: Annotated[str, typer.Option("--instruction", "-i", help="What to change, in plain words.")],
    out: Annotated[Path, typer.Option(help="Where the SVG goes.")],
    model: Annotated[str, typer.Option(help="As for `lookup-spec edit`.")] = DEFAULT_MODEL,
    dtype: Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.")] = "auto",
) -> None:
    """Edits a file and draws what proposed each token of the answer, and where each forward pass began."""
    from lookup_bench.picture import draw, edited_tokens
    from lookup_bench.records import RecordError
    from lookup_spec.pipeline.edit_plan import EditRequest
    from lookup_spec.pipeline.engine import load_engine
    from lookup_spec.text.edit_task import Instruction
    from lookup_spec.text.lines import SourceText

    try:
        source = SourceText.from_bytes(file.read_bytes())
        request = EditRequest(source, Instruction(instruction), file.name)
        tokens, stats = edited_tokens(load_engine(model, dtype=dtype), request)
        speed = f"{stats.completion_tokens} tokens in {stats.forward_passes} forward passes"
        out.write_text(draw(source.text, tokens, f"{instruction}  ({speed})"), encoding="utf-8")
    except OSError as error:
        raise RecordError(f"Cannot draw {file} to {out}: {error.strerror}.") from error


def _load_table(rows: Sequence[LoadRow]) -> Table:
    table = Table(title="All clients together; milliseconds as 50 % / 95 %")
    for name in ("clients", "speculation", "answers", "tokens/s", "over plain", "first piece", "between pieces",
                 "tokens/pass", "right drafts", "answers that differ", "KV tokens", "MB"):  # fmt: skip
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(
            str(row.clients), "yes" if row.speculation else "no", str(row.requests), f"{row.tokens_per_second:.1f}",
            f"{row.over_plain:.2f}", f"{row.first_p50 * 1e3:.0f} / {row.first_p95 * 1e3:.0f}",
            f"{row.gap_p50 * 1e3:.0f} / {row.gap_p95 * 1e3:.0f}", f"{row.tokens / row.passes:.1f}",
            f"{row.accepted} of {row.drafted}", str(row.different), str(row.kv_tokens),
            f"{row.resident_bytes / 1e6:.0f}", end_section=row.speculation,
        )  # fmt: skip
    return table


def _replay(edits: Sequence[Path], git: Path | None, limit: int, workspace: Sequence[Path], model: str,
            widths: Sequence[int], by: Grouping | None, without: Sequence[str]) -> list[Figures]:  # fmt: skip
    from lookup_bench.ablation import parsed
    from lookup_bench.layout import MAX_ANSWER_TOKENS, cases
    from lookup_bench.records import RecordError, read_texts
    from lookup_bench.replay import compare
    from lookup_bench.tokenizer import open_tokenizer

    taken_out = {names: parsed(names) for names in without}
    records = _records(edits, git, limit)
    texts = read_texts(workspace)
    tokenizer = open_tokenizer(model)
    tasks = list(cases(records, tokenizer, texts))
    if not tasks:
        raise RecordError(f"All {len(records)} edits have answers of more than {MAX_ANSWER_TOKENS} tokens.")
    contestants, oracle = _contestants(tokenizer, taken_out, peers=by is None and not without)
    console = Console(file=sys.stderr)
    if len(tasks) < len(records):
        console.print(f"{len(records) - len(tasks)} edits left out: answers over {MAX_ANSWER_TOKENS} tokens.")
    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task(f"{len(tasks)} edits", total=len(widths) * (len(contestants) + 1))
        return compare(contestants, oracle, tasks, widths, lambda: progress.advance(bar), _group(by))


def _group(by: Grouping | None) -> Callable[[Case], str] | None:
    if by is None:
        return None
    return lambda case: (case.edit.language if by is Grouping.LANGUAGE else case.edit.repo) or "not told"


def _records(edits: Sequence[Path], git: Path | None, limit: int) -> list[Edit]:
    from lookup_bench.records import RecordError, git_edits, read_edits

    records = [edit for path in edits for edit in read_edits(path)]
    if git is not None:
        records += git_edits(git, limit)
    if not records:
        raise RecordError("There is nothing to replay; give --edits FILE or --git REPOSITORY.")
    return records


def _contestants(
    tokenizer: Tokenizer, without: Mapping[str, frozenset[str]], *, peers: bool
) -> tuple[list[Contestant], Contestant]:
    """Proposers, and the oracle. Ours are fresh for each edit, so the order of edits does not matter."""
    from lookup_bench.ablation import AblatedProposer
    from lookup_bench.layout import Case
    from lookup_bench.peers import CopyOracle, LongestMatch, PromptLookup, SuffixDecoding
    from lookup_bench.replay import Contestant
    from lookup_spec.pipeline.prompts import text_prompt
    from lookup_spec.propose.proposer import LookupProposer
    from lookup_spec.propose.store import SegmentStore
    from lookup_spec.text.retokenize import TokenizerRetokenizer

    store, retokenizer = SegmentStore(), TokenizerRetokenizer(tokenizer)

    def ours(_: Case) -> LookupProposer:
        return LookupProposer(store, retokenizer=retokenizer)

    def bare(case: Case) -> Prompt:
        told = text_prompt(case.prompt.ids, retokenizer).prompt
        return replace(told, references=(*told.references, *case.prompt.references))

    def ablated(names: frozenset[str]) -> Callable[[Case], LookupProposer]:
        return lambda _: AblatedProposer(names, store, retokenizer)

    oracle = Contestant("oracle: best single copy", lambda case: CopyOracle(case.answer))
    contestants = [
        Contestant("lookup-spec", ours, Case.predicted),
        *(Contestant(f"without {text}", ablated(names), Case.predicted) for text, names in without.items()),
    ]
    if not peers:
        return contestants, oracle
    contestants += [
        Contestant("lookup-spec, base span only", ours),
        Contestant("lookup-spec, bare prompt", ours, bare),
        Contestant("prompt lookup, 10 tokens", lambda _: PromptLookup()),
        Contestant("prompt lookup, full width", lambda _: PromptLookup(tokens=None)),
        Contestant("longest match", lambda _: LongestMatch()),
    ]
    if importlib.util.find_spec("arctic_inference") is not None:
        contestants.append(Contestant("suffix decoding (arctic)", lambda _: SuffixDecoding()))
    return contestants, oracle


def _costs(records: Sequence[Edit], contexts: Sequence[int], sample: int, size: int, model: str, width: int,
           rounds: int) -> list[Cost]:  # fmt: skip
    from lookup_bench.cost import measure
    from lookup_bench.strain import groups
    from lookup_bench.tokenizer import open_tokenizer
    from lookup_spec.text.retokenize import TokenizerRetokenizer

    tokenizer = open_tokenizer(model)
    retokenizer = TokenizerRetokenizer(tokenizer)
    work = groups(records, contexts, sample, size, tokenizer)
    with Progress(console=Console(file=sys.stderr), transient=True) as progress:
        return [
            measure(name, tasks, retokenizer, width, rounds)
            for name, tasks in progress.track(work, description=f"{rounds} rounds")
        ]


def _numbers(text: str, option: str, what: str, example: str) -> list[int]:
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1:
        advice = f"give numbers of at least 1, such as {example}"
        raise typer.BadParameter(f"{text!r} is no list of {what}; {advice}.", param_hint=option)
    return numbers


def _write(
    path: Path,
    rows: Sequence[Figures]
    | Sequence[Row]
    | Sequence[Cost]
    | Sequence[LoadRow]
    | Sequence[Report]
    | Sequence[StreamsReport],
) -> None:
    from lookup_bench.records import RecordError

    try:
        path.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise RecordError(f"Cannot write the figures to {path}: {error.strerror}.") from error


def _table(rows: Sequence[Figures]) -> Table:
    table = Table(title=f"{rows[0].records} edits, {rows[0].tokens:,} tokens")
    table.add_column("nodes", justify="right")
    table.add_column("proposer", no_wrap=True)
    for name in ("tokens/step", "of oracle", "drafted/step", "µs/step"):
        table.add_column(name, justify="right")
    for row, after in zip(rows, [*rows[1:], None], strict=True):
        table.add_row(
            str(row.width), row.proposer, f"{row.tokens_per_step:.2f}", f"{row.oracle_fraction:.2f}",
            f"{row.drafted_per_step:.1f}", f"{row.us_per_step:.0f}",
            end_section=after is not None and after.width != row.width,
        )  # fmt: skip
    return table


def _wide_table(rows: Sequence[Figures]) -> Table:
    """One row for each group and proposer, with all widths beside each other."""
    everything = next(row for row in rows if not row.group)
    table = Table(title=f"{everything.records} edits, {everything.tokens:,} tokens: tokens/step, of oracle (drafted)")
    table.add_column("of", no_wrap=True)
    table.add_column("edits", justify="right")
    table.add_column("proposer", no_wrap=True)
    lines: dict[tuple[str, str], list[Figures]] = {}
    for row in rows:
        lines.setdefault((row.group, row.proposer), []).append(row)
    for row in next(iter(lines.values())):
        table.add_column(f"{row.width} nodes", justify="right", no_wrap=True)
    last = rows[-1].proposer
    for group in dict.fromkeys(group for group, _ in lines):
        for proposer in dict.fromkeys(proposer for _, proposer in lines):
            line = lines[group, proposer]
            cells = [
                f"{row.tokens_per_step:.2f}, {row.oracle_fraction:.3f} ({row.drafted_per_step:.1f})" for row in line
            ]
            table.add_row(group or "all", str(line[0].records), proposer, *cells, end_section=proposer == last)
    return table

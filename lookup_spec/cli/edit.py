"""``lookup-spec edit``: a file rewritten after an instruction."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lookup_spec.cli import options
from lookup_spec.cli.files import read_file, replace_file
from lookup_spec.cli.report import print_diff, summary, watching
from lookup_spec.errors import EditError

if TYPE_CHECKING:
    from lookup_spec.pipeline.edit import EditDone
    from lookup_spec.pipeline.edit_plan import EditRequest
    from lookup_spec.pipeline.engine import Engine


def edit(
    file: Annotated[Path, typer.Argument(help="The file to edit; UTF-8 text.", metavar="FILE")],
    instruction: Annotated[
        str, typer.Option("--instruction", "-i", help="What to change, in plain words.", metavar="TEXT")
    ],
    model: options.Model = None,
    write: Annotated[
        bool,
        typer.Option("--write", "-w", help="Replace the file, all at once, and only if the whole edit arrived."),
    ] = False,
    diff: Annotated[
        bool, typer.Option("--diff", help="Print the change as a unified diff; the default unless --write or --json.")
    ] = False,
    as_json: options.Json = False,
    no_speculation: options.NoSpeculation = False,
    strict: options.Strict = False,
    max_tokens: options.MaxTokens = None,
    temperature: options.Temperature = 0.0,
    seed: options.Seed = None,
    dtype: options.DType = "auto",
    device: options.Device = "auto",
    calibration: options.Calibration = None,
) -> None:
    """Rewrites a file after an instruction.

    Prints the change as a diff, or writes it with --write. The file keeps its mode, line endings, byte-order mark and
    final newline, and stays as it was if anything goes wrong.
    """
    from lookup_spec.params import SamplingParams
    from lookup_spec.pipeline.edit_plan import EditRequest
    from lookup_spec.text.edit_task import Instruction
    from lookup_spec.text.lines import SourceText

    try:
        data = read_file(file)
        request = EditRequest(
            SourceText.from_bytes(data),
            Instruction(instruction),
            file.name,
            SamplingParams(max_tokens=max_tokens, temperature=temperature, seed=seed),
            speculation=not no_speculation,
        )
        done = _run(options.engine(model, dtype, device, calibration, strict=strict), request)
        typer.echo(summary(done.stats), err=True)
        if done.complete and write:
            _write(file, data, done.text.encode())
        if done.complete and (diff or not (write or as_json)):
            print_diff(request.source.text, SourceText.from_text(done.text).text, str(file))
        if as_json:
            _print_json(done)
    except KeyboardInterrupt:
        raise EditError(f"Interrupted; {file} is unchanged.") from None
    if not done.complete:
        raise EditError(
            f"The answer was cut off after {done.stats.completion_tokens} tokens, so {file} is unchanged; "
            "raise --max-tokens or choose a model with a longer context."
        )


def _run(engine: Engine, request: EditRequest) -> EditDone:
    from lookup_spec.pipeline.edit import EditDone, EditProgress, edit

    with closing(engine), watching(request.path) as show:
        for event in edit(engine, request):
            if isinstance(event, EditProgress):
                show(event.line, event.lines, event.piece.stats)
            elif isinstance(event, EditDone):
                return event
    raise EditError("The edit ended without a result.")


def _write(file: Path, before: bytes, after: bytes) -> None:
    if after == before:
        typer.echo(f"{file} needs no change.", err=True)
        return
    replace_file(file, before, after)
    typer.echo(f"Wrote {file}.", err=True)


def _print_json(done: EditDone) -> None:
    sys.stdout.flush()
    typer.echo(
        json.dumps(
            {
                "text": done.text,
                "finish_reason": done.finish_reason,
                "usage": options.usage(done.stats),
                "stats": done.stats.as_dict(),
            },
            ensure_ascii=False,
        )
    )

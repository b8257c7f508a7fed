"""``lookup-spec edit``: files rewritten after an instruction."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from lookup_spec.cli import options
from lookup_spec.cli.files import read_file, replace_file
from lookup_spec.cli.report import print_diff, summary, watching
from lookup_spec.errors import EditError, LookupSpecError

if TYPE_CHECKING:
    from lookup_spec.pipeline.edit import EditDone
    from lookup_spec.pipeline.edit_plan import EditRequest
    from lookup_spec.pipeline.engine import Engine


class _Wanted(NamedTuple):
    """What becomes of each edit."""

    write: bool
    diff: bool
    json: bool


def edit(
    files: Annotated[
        list[Path], typer.Argument(help="The files to edit, one after another; UTF-8 text.", metavar="FILE...")
    ],
    instruction: Annotated[
        str, typer.Option("--instruction", "-i", help="What to change, in plain words.", metavar="TEXT")
    ],
    model: options.Model = None,
    write: Annotated[
        bool,
        typer.Option("--write", "-w", help="Replace each file, all at once, and only if its whole edit arrived."),
    ] = False,
    diff: Annotated[
        bool, typer.Option("--diff", help="Print the change as a unified diff; the default unless --write or --json.")
    ] = False,
    as_json: options.Json = False,
    no_speculation: options.NoSpeculation = False,
    strict: options.Strict = None,
    enforce_eager: options.EnforceEager = False,
    max_tokens: options.MaxTokens = None,
    temperature: options.Temperature = 0.0,
    seed: options.Seed = None,
    dtype: options.DType = "auto",
    device: options.Device = "auto",
    calibration: options.Calibration = None,
) -> None:
    """Rewrites files after an instruction, each by itself.

    Prints the changes as a diff, or writes them with --write. A file keeps its mode, line endings, byte-order mark and
    final newline, and stays as it was if anything goes wrong with it.
    """
    from lookup_spec.params import SamplingParams
    from lookup_spec.pipeline.edit_plan import EditRequest
    from lookup_spec.text.edit_task import Instruction
    from lookup_spec.text.lines import SourceText

    params = SamplingParams(max_tokens=max_tokens, temperature=temperature, seed=seed)
    wanted = _Wanted(write, diff or not (write or as_json), as_json)
    contents = {file: read_file(file) for file in files}
    requests = {}
    for file, data in contents.items():
        try:
            source = SourceText.from_bytes(data)
        except EditError as error:
            raise EditError(f"{file}: {error}") from error
        requests[file] = EditRequest(
            source, Instruction(instruction), file.name, params, speculation=not no_speculation
        )
    failed = 0
    loaded = options.engine(model, dtype, device, calibration, strict=strict, enforce_eager=enforce_eager)
    with closing(loaded) as engine:
        for file, request in requests.items():
            try:
                _edit_one(engine, file, contents[file], request, wanted)
            except KeyboardInterrupt:
                raise EditError(f"Interrupted; {file} is unchanged.") from None
            except LookupSpecError as error:
                if len(requests) == 1:
                    raise
                typer.echo(f"{file}: {' '.join(str(error).split())}", err=True)
                failed += 1
    if failed:
        left = "was left as it was" if failed == 1 else "were left as they were"
        raise EditError(f"{failed} of {len(requests)} files {left}.")


def _edit_one(engine: Engine, file: Path, data: bytes, request: EditRequest, wanted: _Wanted) -> None:
    from lookup_spec.text.lines import SourceText

    done = _run(engine, file, request)
    typer.echo(f"{file}: {summary(done.stats)}", err=True)
    after = done.text.encode()
    if done.complete:
        if after == data:
            typer.echo(f"{file} needs no change.", err=True)
        elif wanted.write:
            replace_file(file, data, after)
            typer.echo(f"Wrote {file}.", err=True)
        if wanted.diff:
            print_diff(request.source.text, SourceText.from_text(done.text).text, str(file))
    if wanted.json:
        _print_json(file, done)
    if not done.complete:
        raise EditError(
            f"The answer was cut off after {done.stats.completion_tokens} tokens, so {file} is unchanged; "
            "raise --max-tokens or choose a model with a longer context."
        )


def _run(engine: Engine, file: Path, request: EditRequest) -> EditDone:
    from lookup_spec.pipeline.edit import EditDone, EditProgress, edit

    with watching(str(file)) as show:
        for event in edit(engine, request):
            if isinstance(event, EditProgress):
                show(event.line, event.lines, event.piece.stats)
            elif isinstance(event, EditDone):
                return event
    raise EditError("The edit ended without a result.")


def _print_json(file: Path, done: EditDone) -> None:
    sys.stdout.flush()
    typer.echo(
        json.dumps(
            {
                "file": str(file),
                "text": done.text,
                "finish_reason": done.finish_reason,
                "usage": options.usage(done.stats),
                "stats": done.stats.as_dict(),
            },
            ensure_ascii=False,
        )
    )

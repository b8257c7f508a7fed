"""``lookup-spec generate``: an answer to any prompt."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from lookup_spec.cli import options
from lookup_spec.cli.report import summary
from lookup_spec.errors import InvalidRequestError


def generate(
    prompt: Annotated[str | None, typer.Argument(help="The prompt; left out, it is read from stdin.")] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="Read the prompt from this UTF-8 file instead.")
    ] = None,
    chat: Annotated[
        bool, typer.Option("--chat", help="Send the prompt as a user's message through the model's chat template.")
    ] = False,
    system: Annotated[str | None, typer.Option(help="With --chat: a system message before it.")] = None,
    stop: Annotated[
        list[str] | None, typer.Option(help="End the answer at this string; may be given several times.")
    ] = None,
    model: options.Model = None,
    max_tokens: options.MaxTokens = None,
    temperature: options.Temperature = 0.0,
    top_p: Annotated[float, typer.Option(help="Sample from the likeliest tokens that together reach this.")] = 1.0,
    seed: options.Seed = None,
    dtype: options.DType = "auto",
    device: options.Device = "auto",
    calibration: options.Calibration = None,
    no_speculation: options.NoSpeculation = False,
    strict: options.Strict = None,
    enforce_eager: options.EnforceEager = False,
    as_json: options.Json = False,
) -> None:
    """Answers a prompt, streaming to stdout.

    Without --chat the model simply continues the text. A line about speed follows on stderr.
    """
    text = _read(prompt, file)
    engine = options.engine(model, dtype, device, calibration, strict=strict, enforce_eager=enforce_eager)
    params = engine.sampling(
        max_tokens=max_tokens, temperature=temperature, top_p=top_p, seed=seed, stop=tuple(stop or ())
    )
    if chat:
        messages = [{"role": "system", "content": system}] if system else []
        ids = engine.template.encode([*messages, {"role": "user", "content": text}]).ids
    elif system:
        raise InvalidRequestError("--system needs --chat: a plain prompt has no messages.", param="system")
    else:
        ids = engine.prompts.encode(text)
    pieces = []
    session = engine.submit(options.prompt(ids), params, speculation=not no_speculation, continuing=not chat)
    with closing(engine):
        for piece in engine.follow(session):
            pieces.append(piece.text)
            if not as_json:
                sys.stdout.write(piece.text)
                sys.stdout.flush()
    stats = session.stats()
    if as_json:
        typer.echo(
            json.dumps(
                {
                    "text": "".join(pieces),
                    "finish_reason": session.finish_reason,
                    "usage": options.usage(stats),
                    "stats": stats.as_dict(),
                },
                ensure_ascii=False,
            )
        )
    else:
        sys.stdout.write("\n")
        typer.echo(summary(stats), err=True)


def _read(prompt: str | None, file: Path | None) -> str:
    if prompt is not None and file is not None:
        raise InvalidRequestError("A prompt and --file were both given; choose one.", param="prompt")
    if prompt is None:
        try:
            data = file.read_bytes() if file is not None else sys.stdin.buffer.read()
        except OSError as error:
            raise InvalidRequestError(f"Cannot read {file}: {error.strerror}.", param="file") from error
        try:
            prompt = data.decode()
        except UnicodeDecodeError as error:
            raise InvalidRequestError(
                f"The prompt in {file or 'stdin'} is not UTF-8 (byte {error.start}).", param="file"
            ) from error
    if not prompt:
        raise InvalidRequestError("The prompt is empty; give some text.", param="prompt")
    return prompt

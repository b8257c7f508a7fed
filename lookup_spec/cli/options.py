"""Options and output shapes that several commands share."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from lookup_spec.pipeline.engine import Engine
    from lookup_spec.propose.prompt import Prompt
    from lookup_spec.stats import Stats

Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        help="A Hugging Face id, a local directory, a .gguf file, or an embedded model's name (see `lookup-spec "
        "models`).  [default: the embedded Qwen2.5-Coder that fits this machine]",
        show_default=False,
    ),
]
MaxTokens = Annotated[
    int | None,
    typer.Option(min=0, help="Most tokens to generate.  [default: until the context is full]", show_default=False),
]
Temperature = Annotated[float, typer.Option(min=0.0, help="0 always takes the likeliest token; higher is freer.")]
Seed = Annotated[int | None, typer.Option(min=0, help="Of the sampling; the same seed gives the same answer.")]
DType = Annotated[
    str,
    typer.Option(help="auto, float32, bfloat16 or float16; auto is bfloat16 where that is quick, else float32."),
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")]
Calibration = Annotated[
    str | None,
    typer.Option(
        "--calibration",
        envvar="LOOKUP_SPEC_CALIBRATION",
        metavar="DIR",
        help="Where to keep, from run to run, how often guesses came true and how long passes took (no text); 'off' "
        "keeps nothing."
        "  [default: in the user's cache directory]",
        show_default=False,
    ),
]
NoSpeculation = Annotated[
    bool, typer.Option("--no-speculation", help="Decode one token at a time; the answer is the same, only slower.")
]
Strict = Annotated[
    bool | None,
    typer.Option(
        "--strict/--no-strict",
        help="Compute every token's scores to the same bits, whatever is drafted, kept or answered beside it; a little "
        "slower. Refused where this machine cannot keep it."
        "  [default: on CPUs that can]",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object (text, finish_reason, usage, stats) last.")]


def engine(
    model: str | None, dtype: str, device: str, calibration: str | None, *, strict: bool | None = None
) -> Engine:
    """Loads the engine, saying on stderr which model runs how."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    from lookup_spec.model.load import load_model
    from lookup_spec.pipeline.engine import Engine

    def progress(message: str) -> None:
        typer.echo(message, err=True)

    loaded = load_model(model, dtype=dtype, device=device, progress=progress)
    typer.echo(f"{loaded.name} in {str(loaded.dtype).removeprefix('torch.')} on {loaded.device}", err=True)
    directory = calibration_directory(calibration)
    # There will be no second request that could begin alike, and measuring costs takes longer than many an answer.
    return Engine(
        loaded,
        prefix_cache_bytes=0,
        calibration=directory,
        costs=None if directory is None else directory / "costs",
        strict=strict,
    )


def calibration_directory(value: str | None) -> Path | None:
    """What ``--calibration`` says: a directory, or None for nothing to be kept."""
    from lookup_spec.model.store import cache_root

    if value == "off":
        return None
    return Path(value).expanduser() if value else cache_root() / "calibration"


def prompt(ids: Sequence[int]) -> Prompt:
    """A prompt without known segments."""
    from lookup_spec.propose.prompt import Prompt

    return Prompt(tuple(ids))


def usage(stats: Stats) -> dict[str, Any]:
    """Token counts with OpenAI's names."""
    return {
        "prompt_tokens": stats.prompt_tokens,
        "completion_tokens": stats.completion_tokens,
        "total_tokens": stats.prompt_tokens + stats.completion_tokens,
    }

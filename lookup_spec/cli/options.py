"""Options and output shapes that several commands share."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from lookup_spec.pipeline.engine import Engine
    from lookup_spec.propose.prompt import Prompt
    from lookup_spec.stats import Stats


@dataclass(frozen=True, slots=True)
class Shared:
    """An option of several commands, which may differ in what holds if it is left out.

    Attributes:
        text: what it is, in whole sentences.
        names: of its flags; none for the parameter's own.
        least: the least number that it may be.
    """

    text: str
    names: tuple[str, ...] = ()
    least: float | None = None

    def option(self, default: str = "", *, also: str = "", panel: str | None = None) -> Any:
        """The option as one command has it.

        Args:
            default: what holds if it is left out; empty where the parameter's own default says so.
            also: more sentences.
            panel: where the help shows it.
        """
        told = " ".join(filter(None, (self.text, also))) + (f"  [default: {default}]" if default else "")
        return typer.Option(*self.names, help=told, min=self.least, show_default=not default, rich_help_panel=panel)


MODEL = Shared(
    "A Hugging Face id, a local directory, a .gguf file, or an embedded model's name (see `lookup-spec models`).",
    ("--model", "-m"),
)
MODEL_DEFAULT = "the embedded Qwen2.5-Coder that fits this machine"
DTYPE = Shared("auto, float32, bfloat16 or float16; auto is bfloat16 where that is quick, else float32.")
DEVICE = Shared("auto, cpu, cuda or mps.")
STRICT = Shared(
    "Compute every token's scores to the same bits, whatever is drafted, kept or answered beside it; a little slower. "
    "Refused where this machine cannot keep it.",
    ("--strict/--no-strict",),
)
STRICT_DEFAULT = "on CPUs that can"
ENFORCE_EAGER = Shared(
    "On a CUDA GPU, launch every pass kernel by kernel rather than replay captured graphs; --strict always does.",
    ("--enforce-eager/--no-enforce-eager",),
)
NO_SPECULATION = Shared("Decode one token at a time; the answer is the same, only slower.", ("--no-speculation",))
MAX_TOKENS = Shared("Most tokens to generate.", least=0)
TEMPERATURE = Shared("0 always takes the likeliest token; higher is freer.", least=0)
SEED = Shared("Of the sampling; the same seed gives the same answer.", least=0)

Model = Annotated[str | None, MODEL.option(MODEL_DEFAULT)]
MaxTokens = Annotated[int | None, MAX_TOKENS.option("until the context is full")]
Temperature = Annotated[float, TEMPERATURE.option()]
Seed = Annotated[int | None, SEED.option()]
DType = Annotated[str, DTYPE.option()]
Device = Annotated[str, DEVICE.option()]
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
NoSpeculation = Annotated[bool, NO_SPECULATION.option()]
Strict = Annotated[bool | None, STRICT.option(STRICT_DEFAULT)]
EnforceEager = Annotated[bool, ENFORCE_EAGER.option()]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object (text, finish_reason, usage, stats) last.")]


def engine(
    model: str | None,
    dtype: str,
    device: str,
    calibration: str | None,
    *,
    strict: bool | None = None,
    enforce_eager: bool = False,
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
        enforce_eager=enforce_eager,
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

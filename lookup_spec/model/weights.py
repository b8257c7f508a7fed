"""Reading a model's weights, all of them, or saying why not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, PreTrainedModel

from lookup_spec.errors import ModelError


def from_pretrained(
    factory: type[AutoModelForCausalLM], directory: Path, shown: Path, **arguments: Any
) -> PreTrainedModel:
    """Loads weights from a local directory and accepts no model of which a part was made up.

    Args:
        factory: what makes the model.
        directory: where to load from.
        shown: the path to name in messages.
        **arguments: passed on.

    Raises:
        ModelError: weights are missing, corrupt, or of the wrong shape.
    """
    try:
        model, report = factory.from_pretrained(
            str(directory),
            local_files_only=True,
            output_loading_info=True,
            trust_remote_code=False,
            **arguments,
        )
    except (
        SafetensorError,
        OSError,
        ValueError,
        RuntimeError,
        ImportError,
        KeyError,
        NotImplementedError,
    ) as error:
        raise ModelError(f"The weights in {shown} cannot be loaded: {_one_line(error)}") from error
    missing = sorted(report["missing_keys"]) + sorted(key for key, *_ in report["mismatched_keys"])
    if missing:
        raise ModelError(
            f"The weights in {shown} are incomplete: {len(missing)} tensors, {missing[0]} among them, are missing or "
            "have the wrong shape; fetch the model again."
        )
    loaded: PreTrainedModel = model
    return loaded


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__

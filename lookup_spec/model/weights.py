"""Reading a model's weights, all of them, or saying why not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, PreTrainedModel

from lookup_spec.errors import ModelError
from lookup_spec.model.libraries import one_line

_EXPECTED = (SafetensorError, OSError, ValueError, RuntimeError, ImportError, KeyError, NotImplementedError)


def load_weights(directory: Path, shown: Path, **arguments: Any) -> PreTrainedModel:
    """Loads a local model and accepts none of which a part was made up.

    Args:
        directory: where to load from.
        shown: the path to name in messages.
        **arguments: for ``AutoModelForCausalLM.from_pretrained``.

    Raises:
        ModelError: weights are missing, corrupt, or of the wrong shape.
    """
    try:
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            str(directory), local_files_only=True, output_loading_info=True, **arguments
        )
    except _EXPECTED as error:
        raise ModelError(f"The weights in {shown} cannot be loaded: {one_line(error)}.") from error
    model: PreTrainedModel = loaded[0]
    missing = sorted(loaded[1]["missing_keys"])
    if missing:
        raise ModelError(
            f"The weights in {shown} are incomplete: {len(missing)} tensors are missing, {missing[0]} first: "
            "fetch the model again."
        )
    return model

"""Which models can be checked over a draft tree, decided from the configuration alone."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from typing import Any

from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, MODEL_FOR_MASKED_LM_MAPPING, PreTrainedConfig

from lookup_spec.errors import ModelError

_LAYER_KINDS = frozenset({"full_attention", "sliding_attention"})


def check_supported(config: PreTrainedConfig) -> None:
    """Accepts causal decoders whose attention can be replaced and whose state can be rolled back.

    A draft tree is checked in one forward pass through an attention function of ours, and rejected tokens are
    taken back. So every layer must call transformers' attention interface, keep keys and values only, and
    take positions as an argument.

    Raises:
        ModelError: the model is of another kind; the message says of which.
    """
    if reason := _obstacle(config):
        raise ModelError(f"Models of type {config.model_type!r} cannot run here: {reason}.")


def steady_context(config: PreTrainedConfig) -> int:
    """Most tokens for which a position is encoded alike, however long the text or its neighbours in a pass.

    Models with ``longrope`` positions take other frequencies for all rows of a pass as soon as one of them lies
    beyond the length that they were first trained for, while keys that are cached already keep the old ones. So what an
    answer is would depend on how its text was cut into passes, and on who else was in them. (``dynamic`` positions
    change beyond ``max_position_embeddings``, where no text goes.)
    """
    text: Any = config.get_text_config(decoder=True)
    parameters = getattr(text, "rope_parameters", None) or {}
    # Models with several kinds of layers have a mapping for each kind.
    kinds = [each for each in (parameters, *parameters.values()) if isinstance(each, Mapping)]
    long = [each["original_max_position_embeddings"] for each in kinds if each.get("rope_type") == "longrope"]
    return min(long, default=sys.maxsize)


def _obstacle(config: PreTrainedConfig) -> str | None:
    """Why a model cannot run, or None."""
    model_class = _causal_class(config)
    if getattr(config, "is_encoder_decoder", False):
        return "this is an encoder-decoder, and only causal decoders are supported"
    if model_class is None:
        return "transformers has no causal decoder for it"
    if type(config) in MODEL_FOR_MASKED_LM_MAPPING and not getattr(config, "is_decoder", False):
        return "this is an encoder, and only causal decoders are supported"
    return _state_obstacle(config, model_class) or _attention_obstacle(model_class)


def _state_obstacle(config: PreTrainedConfig, model_class: Any) -> str | None:
    """What the model keeps between tokens besides keys and values of its own layers."""
    text = config.get_text_config(decoder=True)
    kinds = sorted(set(getattr(text, "layer_types", None) or ()) - _LAYER_KINDS)
    obstacles = {
        "it is recurrent, and its state cannot be rolled back when drafts are rejected": getattr(
            model_class, "_is_stateful", False
        ),
        f"it has layers of kind {kinds[0] if kinds else None}, not only full and sliding attention": kinds,
        "it attends in chunks, which draft trees do not follow": getattr(text, "attention_chunk_size", None),
        "its layers share keys and values": getattr(text, "num_kv_shared_layers", 0),
    }
    return next((reason for reason, applies in obstacles.items() if applies), None)


def _attention_obstacle(model_class: Any) -> str | None:
    # transformers tells this in two ways: a flag of the class, and whether its source calls the interface.
    if not (getattr(model_class, "_supports_attention_backend", False) and _calls_interface(model_class)):
        return "its attention cannot be replaced, as it does not use transformers' attention interface"
    if "position_ids" not in inspect.signature(model_class.forward).parameters:
        return "it does not take positions as an argument"
    return None


def _calls_interface(model_class: Any) -> bool:
    check = getattr(model_class, "_can_set_attn_implementation", None)
    return check is None or bool(check())


def _causal_class(config: PreTrainedConfig) -> Any:
    if type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING:
        return None
    found = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
    return found[0] if isinstance(found, (list, tuple)) else found

"""Which kinds of models are accepted, and that refusals say why."""

from __future__ import annotations

from typing import Any

import pytest
import transformers

from lookup_spec.errors import ModelError
from lookup_spec.model.supported import check_supported, steady_context


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("Llama", {}),
        ("Qwen2", {}),
        ("Qwen2", {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1}),
        ("Qwen3", {}),
        ("Mistral", {"sliding_window": 8}),
        ("Phi3", {}),
        ("Gemma2", {}),
        ("Gemma3Text", {}),
        ("GPT2", {}),
        ("Mixtral", {}),
        ("Qwen2Moe", {}),
        ("GptOss", {}),
    ],
)
def test_causal_decoders_are_accepted(name: str, settings: dict[str, Any]) -> None:
    """Decoders that keep keys and values only pass, windows and experts included."""
    check_supported(getattr(transformers, f"{name}Config")(**settings))


@pytest.mark.parametrize(
    ("name", "settings", "reason"),
    [
        ("Mamba", {}, "recurrent"),
        ("Mamba2", {}, "recurrent"),
        ("Rwkv", {}, "recurrent"),
        ("RecurrentGemma", {}, "recurrent"),
        ("Jamba", {}, "recurrent|layers of kind"),
        ("Zamba", {}, "recurrent|layers of kind"),
        ("Qwen3Next", {}, "recurrent|layers of kind"),
        ("Lfm2", {"num_hidden_layers": 2, "layer_types": ["conv", "full_attention"]}, "layers of kind conv"),
        ("Llama4Text", {}, "layers of kind chunked_attention"),
        ("T5", {}, "encoder-decoder"),
        ("Bart", {}, "encoder-decoder"),
        ("Bert", {}, "an encoder"),
        ("CLIP", {}, "no causal decoder"),
        ("Bloom", {}, "attention cannot be replaced"),
    ],
)
def test_other_models_are_refused_with_the_reason(name: str, settings: dict[str, Any], reason: str) -> None:
    """Everything else is refused by one sentence that names the type and the obstacle."""
    config = getattr(transformers, f"{name}Config")(**settings)
    with pytest.raises(ModelError, match=reason) as caught:
        check_supported(config)
    assert repr(config.model_type) in str(caught.value)
    assert "\n" not in str(caught.value)


LONG_ROPE = {"rope_type": "longrope", "rope_theta": 1e4, "short_factor": [1.0] * 4, "long_factor": [2.0] * 4}


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        ("Phi3", {"original_max_position_embeddings": 64, "rope_parameters": LONG_ROPE}, 64),
        ("Llama", {"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 4.0}}, None),
        ("Llama", {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 4.0}}, None),
        ("Gemma3Text", {}, None),
        ("GPT2", {}, None),
    ],
)
def test_positions_must_mean_the_same_throughout(name: str, settings: dict[str, Any], expected: int | None) -> None:
    """Only longrope, whose frequencies depend on the longest text of a pass, has a context shorter than it says."""
    shape = {"hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 4} if name == "Phi3" else {}
    config = getattr(transformers, f"{name}Config")(max_position_embeddings=192, **shape, **settings)
    assert min(steady_context(config), 10_000) == (expected or 10_000)

"""A GGUF file as an ordinary model directory, converted once for each type of weights.

Dequantizing takes up to minutes, loading the result takes seconds and maps the weights instead of copying them.
"""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig, PreTrainedConfig, PreTrainedModel

from lookup_spec.errors import ModelError
from lookup_spec.model.gguf_file import GgufFile, read_gguf, rotary_scaling
from lookup_spec.model.gguf_tokenizer import end_ids, gguf_tokenizer
from lookup_spec.model.quiet import without_progress_bars
from lookup_spec.model.store import Progress, cache_root, make_once, require_space
from lookup_spec.model.supported import check_supported
from lookup_spec.model.weights import from_pretrained

_LAYOUT = 1
"""Counts up when a conversion's result changes, so that old ones are not used any more."""


def converted_path(name: str, sha256: str, dtype: torch.dtype) -> Path:
    """Where the converted directory of a file with this sum lies, or will lie."""
    kind = str(dtype).removeprefix("torch.")
    return cache_root() / "converted" / f"{name}-{sha256[:12]}-{kind}-v{_LAYOUT}"


def convert(path: Path, name: str, sha256: str, dtype: torch.dtype, progress: Progress) -> Path:
    """Converts a GGUF file to a directory of config, safetensors and tokenizer, once; returns the directory.

    The weights equal, bit for bit, what transformers loads from the file in the same type.

    Raises:
        ModelError: the file is corrupt, inconsistent, or of a kind that cannot run here.
    """

    def make(target: Path) -> None:
        size = path.stat().st_size
        progress(
            f"Converting {name} ({size / 1e9:.2f} GB) to {str(dtype).removeprefix('torch.')}, once; "
            f"this takes about {max(1, round(size / 4e8))} to {max(2, round(size / 1.5e8))} minutes."
        )
        _convert(read_gguf(path), target, dtype)

    return make_once(converted_path(name, sha256, dtype), make, progress)


@without_progress_bars()
def _convert(file: GgufFile, target: Path, dtype: torch.dtype) -> None:
    tokenizer = gguf_tokenizer(file)
    config = _config(file)
    check_supported(config)
    values = sum(_product(shape) for shape in file.tensors.values())
    require_space(values * dtype.itemsize, f"Converting {file.path.name}")
    model = from_pretrained(
        AutoModelForCausalLM,
        file.path.parent,
        file.path,
        gguf_file=file.path.name,
        config=config,
        dtype=dtype,
    )
    _forget_quantization(model)
    model.generation_config = GenerationConfig(
        eos_token_id=end_ids(file), bos_token_id=file.special_id("bos")
    )
    model.save_pretrained(target, max_shard_size="1000GB")
    tokenizer.save_pretrained(target)


def _config(file: GgufFile) -> PreTrainedConfig:
    architecture = file.metadata["general.architecture"]
    try:
        config = AutoConfig.from_pretrained(
            str(file.path.parent), gguf_file=file.path.name, local_files_only=True
        )
    except (ValueError, KeyError, NotImplementedError) as error:
        raise ModelError(
            f"{file.path}: general.architecture is {architecture!r}, which cannot be read from GGUF files "
            f"({error}); use the model's safetensors directory instead."
        ) from error
    scaling = rotary_scaling(file)
    rotary = getattr(config, "rope_parameters", None) or {}
    if scaling and rotary.get("rope_type", "default") == "default":
        raise ModelError(
            f"{file.path}: {architecture}.rope.scaling.type is {scaling!r}, which cannot be read from GGUF files "
            "here; use the model's safetensors directory instead."
        )
    if "token_embd.weight" in file.tensors:
        config.vocab_size = file.tensors["token_embd.weight"][0]
    return config


def _forget_quantization(model: PreTrainedModel) -> None:
    """The weights are plain now, but transformers refuses to save a model that remembers being quantized."""
    for name in ("quantization_config", "_pre_quantization_dtype"):
        if hasattr(model.config, name):
            delattr(model.config, name)
    for name in ("hf_quantizer", "quantization_method"):
        if hasattr(model, name):
            delattr(model, name)
    model.is_quantized = False


def _product(shape: tuple[int, ...]) -> int:
    result = 1
    for length in shape:
        result *= length
    return result

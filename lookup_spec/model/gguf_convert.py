"""A GGUF file as an ordinary model directory, converted once for each type of weights.

Dequantizing takes a while; loading the result takes seconds and maps the weights instead of copying them.
"""

from __future__ import annotations

import math
from pathlib import Path

import torch
from transformers import (
    AutoConfig,
    GenerationConfig,
    PreTrainedConfig,
    PreTrainedModel,
)

from lookup_spec.errors import ModelError
from lookup_spec.model.gguf_checks import check_consistent, check_rotary, embedding_rows
from lookup_spec.model.gguf_file import GgufFile, read_gguf, write_without_vocabulary
from lookup_spec.model.gguf_tokenizer import end_ids, gguf_tokenizer
from lookup_spec.model.libraries import one_line, without_progress_bars
from lookup_spec.model.store import Progress, cache_root, make_once, require_space
from lookup_spec.model.supported import check_supported
from lookup_spec.model.weights import load_weights

_LAYOUT = 1
"""Counts up when a conversion's result changes, so that old ones are not used any more."""

_BARE = "bare.gguf"


def converted_path(name: str, sha256: str, dtype: torch.dtype) -> Path:
    """Where the converted directory of a file with this sum lies, or will lie."""
    return cache_root() / "converted" / f"{name}-{sha256[:12]}-{_name(dtype)}-v{_LAYOUT}"


def convert(path: Path, name: str, sha256: str, dtype: torch.dtype, progress: Progress) -> Path:
    """Converts a GGUF file to a directory of config, safetensors and tokenizer, once; returns the directory.

    The weights equal, bit for bit, what transformers loads from the file in the same type.

    Raises:
        ModelError: the file is corrupt, inconsistent, or of a kind that cannot run here.
    """

    def make(target: Path) -> None:
        progress(
            f"Converting {name} ({path.stat().st_size / 1e9:.2f} GB) to {_name(dtype)}; this happens once "
            "and may take a minute or two."
        )
        file = read_gguf(path)
        check_consistent(file)
        _write_directory(file, target, dtype)

    return make_once(converted_path(name, sha256, dtype), make, progress)


@without_progress_bars()
def _write_directory(file: GgufFile, target: Path, dtype: torch.dtype) -> None:
    tokenizer = gguf_tokenizer(file)
    values = sum(math.prod(shape) for shape in file.tensors.values())
    require_space(file.path.stat().st_size + values * dtype.itemsize, f"Converting {file.path.name}")
    target.mkdir()
    bare = target / _BARE
    write_without_vocabulary(file, bare, embedding_rows(file))
    model = _dequantized(file, bare, dtype)
    bare.unlink()
    bos = file.special_id("bos")
    model.generation_config = GenerationConfig(eos_token_id=end_ids(file), bos_token_id=bos)
    model.save_pretrained(target, max_shard_size="1000GB")
    tokenizer.save_pretrained(target)


def _dequantized(file: GgufFile, bare: Path, dtype: torch.dtype) -> PreTrainedModel:
    config = _config(file, bare)
    check_supported(config)
    model = load_weights(bare.parent, file.path, gguf_file=bare.name, config=config, dtype=dtype)
    # The weights are plain now, but transformers refuses to save a model that remembers being quantized.
    for owner, name in (
        (model.config, "quantization_config"),
        (model, "hf_quantizer"),
        (model, "quantization_method"),
    ):
        if hasattr(owner, name):
            delattr(owner, name)
    model.is_quantized = False  # type: ignore[assignment]  # torch types every attribute as a module
    return model


def _config(file: GgufFile, bare: Path) -> PreTrainedConfig:
    try:
        config: PreTrainedConfig = AutoConfig.from_pretrained(
            str(bare.parent), gguf_file=bare.name, local_files_only=True
        )
    except (ValueError, KeyError, NotImplementedError) as error:
        raise ModelError(
            f"{file.path}: general.architecture is {file.architecture!r}, which cannot be read from GGUF "
            f"files ({one_line(error)}); use the model's safetensors directory instead."
        ) from error
    rotary = getattr(config, "rope_parameters", None) or {}
    check_rotary(file, rotary.get("rope_type", "default"))
    # The name inside the file may be anything, and loading by it must not be tried.
    config.name_or_path = ""
    return config


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")

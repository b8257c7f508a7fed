"""From a name to a model that is ready to run."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import nn
from transformers import (
    AutoConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from lookup_spec.errors import ModelError
from lookup_spec.model.embedded import DEFAULT, EMBEDDED, LIGHT, EmbeddedModel, assemble, is_installed
from lookup_spec.model.gguf_checks import check_consistent
from lookup_spec.model.gguf_convert import convert, converted_path
from lookup_spec.model.gguf_file import file_sha256, read_gguf
from lookup_spec.model.gguf_tokenizer import gguf_tokenizer
from lookup_spec.model.libraries import one_line, without_progress_bars
from lookup_spec.model.placement import available_memory, choose_device, choose_dtype
from lookup_spec.model.source import DirectorySource, EmbeddedSource, GgufSource, Source, resolve
from lookup_spec.model.store import Progress
from lookup_spec.model.supported import check_supported, steady_context
from lookup_spec.model.tokenizer import as_ids, check_vocabulary, declared_end_ids, load_tokenizer
from lookup_spec.model.weights import load_weights

_log = logging.getLogger(__name__)

_WORKING_MEMORY = 5 << 28
"""Room for caches and activations besides the weights (1.25 GiB), when judging whether a model fits."""

_CONVERTING_MEMORY = 1 << 30
"""What a conversion takes besides that, measured: its largest tensor several times over."""


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model in evaluation mode, without gradients, with its tokenizer.

    Attributes:
        model: the network, on ``device``, its weights of ``dtype``.
        tokenizer: exactly the model's own, chat template included; it never cleans up spaces.
        name: what to call the model.
        eos_ids: tokens that end an answer; at least one.
        context_length: most tokens that prompt and answer may have together; less than the configuration says where
            positions would change their meaning on the way.
        dtype: type of the weights.
        device: where they are.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerFast
    name: str
    eos_ids: frozenset[int]
    context_length: int
    dtype: torch.dtype
    device: torch.device


def load_model(
    spec: str | None = None, *, dtype: str = "auto", device: str = "auto", progress: Progress | None = None
) -> LoadedModel:
    """Finds a model and loads it.

    Args:
        spec: name of an embedded model, a ``.gguf`` file, a directory, or a Hugging Face id; None takes the
            embedded model that suits this machine.
        dtype: ``auto`` (bfloat16 where the hardware computes in it, else float32), ``bfloat16``, ``float16``
            or ``float32``.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:1``, … or ``mps``.
        progress: told, in sentences, about work that takes a while; by default such sentences are logged.

    Raises:
        ModelError: the model is missing, corrupt, or of a kind that cannot run here.
    """
    progress = progress or _log.info
    place = choose_device(device)
    kind = choose_dtype(dtype, place)
    if spec is None:
        spec = default_model(dtype, device)
        progress(f"No model was named; {spec} suits this machine.")
    source = resolve(spec)
    return _load_directory(_directory(source, kind, progress), source.name, kind, place)


def model_directory(spec: str, *, dtype: str = "auto", device: str = "auto", progress: Progress | None = None) -> Path:
    """Where a model's weights lie as transformers and others read them, converted first if need be.

    Args:
        spec: as for :func:`load_model`, as the others.

    Raises:
        ModelError: the model is missing or corrupt.
    """
    return _directory(resolve(spec), choose_dtype(dtype, choose_device(device)), progress or _log.info)


def gguf_path(spec: str, progress: Progress | None = None) -> Path:
    """The file of a model that is one GGUF file, for programs that read such.

    Args:
        spec: as for :func:`load_model`.
        progress: as for :func:`load_model`.

    Raises:
        ModelError: it is missing, or is no such file.
    """
    source = resolve(spec)
    if isinstance(source, DirectorySource):
        raise ModelError(f"{source.path} is a directory, and no GGUF file.")
    return source.path if isinstance(source, GgufSource) else assemble(source.model, progress or _log.info)


def load_tokenizer_only(spec: str, progress: Progress | None = None) -> Tokenizer:
    """The fast tokenizer of a model, without its weights: no conversion, and little memory.

    Args:
        spec: as for :func:`load_model`.
        progress: as for :func:`load_model`.

    Raises:
        ModelError: the model is missing, or its tokenizer cannot be used.
    """
    source = resolve(spec)
    if isinstance(source, DirectorySource):
        tokenizer = load_tokenizer(source.path)
    else:
        file = read_gguf(gguf_path(spec, progress))
        check_consistent(file)
        tokenizer = gguf_tokenizer(file)
    backend: Tokenizer = tokenizer.backend_tokenizer
    return backend


def default_model(dtype: str = "auto", device: str = "auto") -> str:
    """The embedded model that suits this machine: the large one, or the light one where memory is short.

    Where only one of the two is installed, that one.
    """
    place = choose_device(device)
    kind = choose_dtype(dtype, place)
    big, light = EMBEDDED[DEFAULT], EMBEDDED[LIGHT]
    memory = available_memory(place)
    needed = required_memory(big, kind)
    if not converted_path(big.name, big.sha256, kind).exists():
        needed += _CONVERTING_MEMORY
    fits = memory is None or memory >= needed
    if is_installed(big) and fits:
        return big.name
    return light.name if is_installed(light) else big.name


def required_memory(model: EmbeddedModel, dtype: torch.dtype) -> int:
    """Bytes of memory that an embedded model needs: its weights and room to work."""
    return model.parameters * dtype.itemsize + _WORKING_MEMORY


def _directory(source: Source, dtype: torch.dtype, progress: Progress) -> Path:
    """The model's directory, converted from GGUF first if need be."""
    if isinstance(source, DirectorySource):
        return source.path
    if isinstance(source, EmbeddedSource):
        ready = converted_path(source.name, source.model.sha256, dtype)
        if ready.exists():
            return ready
        return convert(assemble(source.model, progress), source.name, source.model.sha256, dtype, progress)
    return convert(source.path, source.name, file_sha256(source.path), dtype, progress)


@without_progress_bars()
def _load_directory(path: Path, name: str, dtype: torch.dtype, device: torch.device) -> LoadedModel:
    config = _config(path)
    check_supported(config)
    context_length = min(_context_length(config, path), steady_context(config))
    tokenizer = load_tokenizer(path)
    model = load_weights(path, path, config=config, dtype=dtype)
    embeddings = model.get_input_embeddings()
    assert isinstance(embeddings, nn.Embedding)
    rows = embeddings.num_embeddings
    check_vocabulary(tokenizer, rows, path)
    eos_ids = _end_ids(path, config, tokenizer, rows)
    model.requires_grad_(False)
    placed: Any = model.to(device)  # type: ignore[arg-type]  # the wrapper of transformers hides the signature
    return LoadedModel(placed, tokenizer, name, eos_ids, context_length, dtype, device)


def _config(path: Path) -> PreTrainedConfig:
    try:
        config: PreTrainedConfig = AutoConfig.from_pretrained(str(path), local_files_only=True)
    except (OSError, ValueError, KeyError, TypeError, ImportError) as error:
        raise ModelError(f"The configuration in {path} cannot be used: {one_line(error)}.") from error
    return config


def _context_length(config: PreTrainedConfig, path: Path) -> int:
    text = config.get_text_config(decoder=True)
    for key in ("max_position_embeddings", "n_positions", "max_sequence_length", "seq_length"):
        value = getattr(text, key, None)
        if isinstance(value, int) and value > 0:
            return value
    raise ModelError(f"config.json in {path} does not say how long a context the model holds.")


def _end_ids(path: Path, config: PreTrainedConfig, tokenizer: PreTrainedTokenizerFast, rows: int) -> frozenset[int]:
    """Every end token that the generation configuration, the configuration or the tokenizer names."""
    ids = declared_end_ids(path)
    ids |= as_ids(getattr(config.get_text_config(decoder=True), "eos_token_id", None), f"eos_token_id of {path}")
    ids |= as_ids(tokenizer.eos_token_id, f"eos_token of {path}")
    if not ids:
        raise ModelError(f"{path} names no eos_token_id, so answers would never end; add it to config.json.")
    if outside := [token for token in ids if not 0 <= token < rows]:
        raise ModelError(f"eos_token_id {outside[0]} in {path} is outside the model's {rows} tokens.")
    return ids

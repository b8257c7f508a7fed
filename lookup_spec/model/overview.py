"""The embedded models and what this machine can do with them."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from lookup_spec.model.embedded import EMBEDDED, EmbeddedModel, assembled_path, is_installed
from lookup_spec.model.gguf_convert import converted_path
from lookup_spec.model.load import default_model, required_memory
from lookup_spec.model.placement import DTYPES, available_memory, choose_device, choose_dtype


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One embedded model on this machine.

    Attributes:
        name: what to give to ``--model``.
        default: taken when no model is named.
        installed: all its packages are there.
        size: bytes of its file.
        assembled: its file has been joined in the cache.
        converted: types of weights that it is ready in; others are converted at their first use.
        memory: bytes that it needs in ``dtype``.
        dtype: the type that this machine would take.
        runs: whether it can run here now.
        remark: why not; empty if it can.
        licence: of the weights.
        install: the command that installs it.
    """

    name: str
    default: bool
    installed: bool
    size: int
    assembled: bool
    converted: tuple[str, ...]
    memory: int
    dtype: str
    runs: bool
    remark: str
    licence: str
    install: str


def overview(dtype: str = "auto", device: str = "auto") -> list[ModelRow]:
    """What is known about every embedded model, in the catalogue's order.

    Raises:
        ModelError: the type or the device is unknown.
    """
    place = choose_device(device)
    kind = choose_dtype(dtype, place)
    memory = available_memory(place)
    chosen = default_model(dtype, device)
    return [_row(model, kind, memory, default=model.name == chosen) for model in EMBEDDED.values()]


def _row(model: EmbeddedModel, dtype: torch.dtype, memory: int | None, *, default: bool) -> ModelRow:
    needed = required_memory(model, dtype)
    remark = _obstacle(model, needed, memory)
    ready = (name for name, kind in DTYPES.items() if converted_path(model.name, model.sha256, kind).is_dir())
    return ModelRow(
        name=model.name,
        default=default,
        installed=is_installed(model),
        size=model.size,
        assembled=assembled_path(model).is_file(),
        converted=tuple(ready),
        memory=needed,
        dtype=str(dtype).removeprefix("torch."),
        runs=not remark,
        remark=remark,
        licence=model.licence,
        install=model.install_command,
    )


def _obstacle(model: EmbeddedModel, needed: int, memory: int | None) -> str:
    if not is_installed(model):
        return f"not installed; {model.install_command}"
    if memory is not None and memory < needed:
        return f"needs {needed / 1e9:.1f} GB of memory, and {memory / 1e9:.1f} GB are free"
    return ""

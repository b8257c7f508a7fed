"""The model and the engine that settings name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from lookup_server.settings import Settings
from lookup_spec.model.load import LoadedModel, load_model
from lookup_spec.pipeline.engine import Engine


def load(settings: Settings, progress: Callable[[str], None]) -> LoadedModel:
    """The model.

    Args:
        settings: the operator's.
        progress: told what takes long.

    Raises:
        ModelError: it cannot be had.
    """
    return load_model(settings.model, dtype=settings.dtype, device=settings.device, progress=progress)


def engine_of(loaded: LoadedModel, settings: Settings, calibration: Path | None) -> Engine:
    """An engine for the model.

    Args:
        loaded: the model.
        settings: the operator's.
        calibration: where counts of guesses are kept; None keeps none.

    Raises:
        ModelError: memory is too short, or the machine cannot keep what ``strict`` promises.
    """
    return Engine(
        loaded,
        max_sessions=settings.max_sessions,
        max_context_tokens=settings.max_context_tokens,
        kv_cache_bytes=_bytes(settings.kv_cache_mb),
        prefix_cache_bytes=_bytes(settings.prefix_cache_mb),
        calibration=calibration,
        strict=settings.strict,
        enforce_eager=settings.enforce_eager,
    )


def _bytes(megabytes: float | None) -> int | None:
    return None if megabytes is None else int(megabytes * 1_000_000)

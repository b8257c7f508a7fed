"""What passes cost on this machine, kept from run to run, so that a start need not measure it."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import platform
from pathlib import Path
from secrets import token_hex
from typing import Any

import torch

from lookup_spec.engine.budget import CostCurve
from lookup_spec.model.forward import PackedModel
from lookup_spec.model.placement import processor

_FORMAT = "lookup-spec costs 1"

_log = logging.getLogger(__name__)


class KeptCosts:
    """A file that holds the cost curve of one model on one machine: times only, nothing of any text.

    A curve that comes from it is as true as the last run left it; every step goes on to correct it.

    Args:
        directory: where such files are kept; None keeps nothing.
        model: whose passes; its shape, type, device, threads and the versions of libraries tell one curve from others.
        graphs: its passes are replayed where they can be.
    """

    def __init__(self, directory: Path | None, model: PackedModel, *, graphs: bool = False) -> None:
        about = json.dumps(
            {
                "format": _FORMAT,
                "device": processor(model.device),
                "machine": platform.machine(),
                "threads": torch.get_num_threads(),
                "torch": torch.__version__,
                "config": model.model.config.to_dict(),
                "dtype": str(model.model.dtype),
                "strict": model.strict,
                "graphs": graphs,
            },
            sort_keys=True,
            default=str,
        )
        name = f"{hashlib.sha256(about.encode()).hexdigest()[:16]}.json"
        self._path = None if directory is None else directory / name

    def read(self) -> CostCurve | None:
        """The curve; None if there is none, or none that can be used, which the log says."""
        if self._path is None:
            return None
        try:
            return _parse(json.loads(self._path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            _log.warning("The costs in %s are not used and will be replaced (%s).", self._path, error)
            return None

    def write(self, curve: CostCurve) -> None:
        """Replaces the file, whole or not at all; that it cannot be written is said in the log."""
        if self._path is None:
            return
        seconds, per_pair = curve.known
        partial = self._path.with_name(f".{self._path.name}.{token_hex(8)}.partial")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            partial.write_text(json.dumps({"seconds": seconds, "per_pair": per_pair}), encoding="utf-8")
            partial.replace(self._path)
        except OSError as error:
            _log.warning("The costs of passes cannot be kept in %s (%s).", self._path, error)


def _parse(kept: Any) -> CostCurve:
    seconds = {int(width): float(value) for width, value in kept["seconds"].items()}
    per_pair = float(kept["per_pair"])
    sound = all(width > 0 and 0 < value < math.inf for width, value in seconds.items())
    if len(seconds) < 2 or not sound or not 0 <= per_pair < math.inf:
        raise ValueError("it holds no times of at least two widths")
    return CostCurve(seconds, per_pair)

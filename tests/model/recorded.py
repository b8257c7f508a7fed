"""A stand-in for CUDA graphs that runs anywhere and is as strict: what is replayed are the operations that were taken
down, on the same memory. No Python of the pass runs again, and what needs the host's answer cannot be taken down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

_ATEN = torch.ops.aten
_ASK_THE_HOST = {
    _ATEN._local_scalar_dense.default,  # Tensor.item, and what asks for it: bool, int, comparisons in an if
    _ATEN.lift_fresh.default,  # torch.tensor, which copies from the host
    _ATEN.nonzero.default,  # and masks as indices
    _ATEN.masked_select.default,
    _ATEN.equal.default,
}


class _Recording(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, Any, Any, Any]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _ASK_THE_HOST:
            raise RuntimeError(f"{func} cannot be captured\nand here is some advice")
        out = func(*args, **(kwargs or {}))
        self.calls.append((func, args, kwargs or {}, out))
        return out


class Recorded:
    """Takes passes down; counts how many, and how often they were replayed."""

    def __init__(self) -> None:
        self.captured = 0
        self.replayed = 0

    def __call__(self, run: Callable[[], None]) -> Callable[[], None]:
        run()
        recording = _Recording()
        # Models ask this, and leave out what cannot be captured.
        with patch("torch.cuda.is_current_stream_capturing", lambda: True), recording:
            run()
        self.captured += 1

        @torch.no_grad()
        def replay() -> None:
            self.replayed += 1
            now: dict[int, Tensor] = {}

            def current(value: Any) -> Any:
                return now.get(id(value), value) if isinstance(value, Tensor) else value

            for func, args, kwargs, out in recording.calls:
                again = func(*tree_map(current, args), **tree_map(current, kwargs))
                now.update(zip(map(id, tree_leaves(out)), tree_leaves(again), strict=True))

        return replay


def rerun(run: Callable[[], None]) -> Callable[[], None]:
    """Replays by running the function again."""
    run()
    return run

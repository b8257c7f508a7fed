"""Exact, draft-free speculative decoding for code editing.

The answer to an edit mostly stands in the prompt already. lookup-spec guesses long continuations by looking them up
there and lets the model check each guess in one forward pass; the answer is exactly what plain decoding gives.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lookup_spec._version import __version__
from lookup_spec.errors import (
    ContextLengthError,
    EditError,
    GrammarError,
    InvalidRequestError,
    LookupSpecError,
    ModelError,
)
from lookup_spec.grammar import Grammar
from lookup_spec.params import SamplingParams
from lookup_spec.stats import Load, SourceStats, Stats

if TYPE_CHECKING:
    from lookup_spec.engine.session import Piece
    from lookup_spec.pipeline.engine import Engine, load_engine
    from lookup_spec.pipeline.result import Result

__all__ = [
    "ContextLengthError",
    "EditError",
    "Engine",
    "Grammar",
    "GrammarError",
    "InvalidRequestError",
    "Load",
    "LookupSpecError",
    "ModelError",
    "Piece",
    "Result",
    "SamplingParams",
    "SourceStats",
    "Stats",
    "__version__",
    "load_engine",
]


_LAZY = {
    "Engine": "lookup_spec.pipeline.engine",
    "Piece": "lookup_spec.engine.session",
    "Result": "lookup_spec.pipeline.result",
    "load_engine": "lookup_spec.pipeline.engine",
}


def __getattr__(name: str) -> Any:
    # Torch loads only when an engine is asked for: importing the proposers or the CLI's help must not pay for it.
    module = _LAZY.get(name)
    if module is not None:
        return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""How a model is run on this machine: in which mode, within which memory, and at what cost."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from pathlib import Path

from lookup_spec.engine.budget import CostCurve, Target
from lookup_spec.engine.kept_costs import KeptCosts
from lookup_spec.engine.memory import Room, measure_room
from lookup_spec.errors import ModelError
from lookup_spec.model.forward import PackedModel
from lookup_spec.model.graphs_check import graphs_of
from lookup_spec.model.load import LoadedModel
from lookup_spec.model.steady_check import check_steady

_log = logging.getLogger(__name__)

_CHUNK_SECONDS = 0.5
_LEAST_CHUNK, _MOST_CHUNK = 64, 2048
_SEATED = 4  # a share of one in so many of the memory for keys and values, for those that graphs read


@dataclass(frozen=True, slots=True)
class Setup:
    """A model as it is run here.

    Attributes:
        model: makes caches, and computes what comes.
        target: what passes are asked of: the model itself, or what replays its graphs.
        room: memory for keys and values, seats not counted.
        context_length: most tokens of a prompt and its answer.
        costs: what passes cost.
        kept_costs: where that is kept.
    """

    model: PackedModel
    target: Target
    room: Room
    context_length: int
    costs: CostCurve
    kept_costs: KeptCosts

    @classmethod
    def choose(
        cls,
        loaded: LoadedModel,
        *,
        strict: bool | None,
        enforce_eager: bool,
        max_sessions: int,
        max_context_tokens: int | None,
        kv_cache_bytes: int | None,
        prefix_cache_bytes: int | None,
        costs: Path | None,
    ) -> Setup:
        """Tries what this machine can do; arguments as for :class:`lookup_spec.pipeline.engine.Engine`.

        Raises:
            ModelError: memory is too short, or this machine cannot keep what ``strict`` promises.
        """
        model, known = _in_mode(loaded, strict, costs)
        longest = min(loaded.context_length, max_context_tokens or loaded.context_length)
        room = measure_room(model, kv_cache_bytes, prefix_cache_bytes, longest * max_sessions)
        graphs = None if enforce_eager else graphs_of(model, room.tokens // _SEATED, longest)
        kept_costs = KeptCosts(costs, model, graphs=graphs is not None)
        if graphs is not None:
            room = replace(room, tokens=room.tokens - graphs.seats.tokens)
            known = kept_costs.read()
        target: Target = model if graphs is None else graphs
        length = min(longest, room.tokens)
        return cls(model, target, room, length, known or CostCurve.measure(target, length), kept_costs)

    @property
    def chunk(self) -> int:
        """Prompt tokens that a pass computes in a time that others' streams can wait."""
        return max(self.costs.rows_within(_CHUNK_SECONDS, _MOST_CHUNK), _LEAST_CHUNK)


def _in_mode(loaded: LoadedModel, strict: bool | None, costs: Path | None) -> tuple[PackedModel, CostCurve | None]:
    """The model, strict or not, and what is known already of what its passes cost."""
    if strict is None and loaded.device.type == "cpu":
        try:
            return _in_mode(loaded, True, costs)
        except ModelError as error:
            _log.info("Answers are not strict. %s", error)
    model = PackedModel(loaded.model, strict=bool(strict))
    known = KeptCosts(costs, model).read()
    if model.strict and known is None:  # costs are kept of models that have passed, on the same machine
        check_steady(model)
    return model, known

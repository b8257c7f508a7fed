"""Whether replayed passes can be had on a model's device, and give what passes give that are computed as they come."""

from __future__ import annotations

import logging

import torch
from torch import Tensor

from lookup_spec.model.forward import PackedModel, Rows
from lookup_spec.model.graphs import Graphs, arrangement, brief, capture_for
from lookup_spec.model.seats import Seats

_TEXT = 70  # tokens before the rows that are compared
_TREE = (-1, 0, 0, 1, 2, 4)
_PATH = (0, 2, 4, 5)  # a branch of it, which is kept
_ALIKE = 0.98  # least cosine of two rows of logits; rounding to sixteen bits leaves far more

_log = logging.getLogger(__name__)


def graphs_of(model: PackedModel, tokens: int, longest: int) -> Graphs | None:
    """A model with graphs, the first of them captured and tried.

    Args:
        model: any.
        tokens: memory for the sessions' seats.
        longest: most tokens of a session.

    Returns:
        None where that is of no use: on devices that have no graphs, for strict models, without memory for a short
        text; or where it does not work, which the log says.
    """
    capture = None if model.strict else capture_for(model.device)
    count, capacity = arrangement(tokens, longest)
    if capture is None or not count:
        return None
    probe = model.new_cache()
    model.forward([Rows(probe, (0,), (-1,), 0)])
    probe.commit([0])
    try:
        graphs = Graphs(model, Seats(probe.rows(0, 1), count, capacity), capture)
        graphs.warm_up()
        if not graphs.captured:
            return None
        likeness = compare(model, graphs)
    except Exception as error:
        _log.warning("No graphs are used, all passes are computed as they come: %s", brief(error))
        return None
    if not likeness >= _ALIKE:
        _log.warning("No graphs are used: what they give is only to %.3f like what it should be.", likeness)
        return None
    return graphs


def compare(model: PackedModel, graphs: Graphs) -> float:
    """Computes a tree behind a text, and a row behind one of its branches, both ways.

    Returns:
        The least cosine of a replayed row of logits and its computed twin; not a number if a row holds such.
    """
    generator = torch.Generator().manual_seed(0)
    text, tree, last = torch.randint(model.vocab_size, (3, _TEXT), generator=generator).tolist()
    rows: list[Tensor] = []
    for way in (model, graphs):
        cache = way.new_cache()
        way.forward([Rows(cache, text, range(-1, _TEXT - 1), _TEXT)])
        cache.commit(range(_TEXT))
        [branched] = way.forward([Rows(cache, tree[: len(_TREE)], _TREE, 0)])
        cache.commit(_PATH)
        [single] = way.forward([Rows(cache, last[:1], (-1,), 0)])
        rows.append(torch.cat([branched, single]))
    return float(torch.cosine_similarity(rows[0], rows[1]).min())

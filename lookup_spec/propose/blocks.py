"""How much of a context is indexed together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

MOST = 8
"""A context is cut into about so many blocks at most, whatever it consists of: each is looked up in at each step."""

_SMALLEST = 1024


def blocks(edges: Sequence[int]) -> list[tuple[int, int]]:
    """Joins neighbouring stretches into blocks, from the left, until each holds its share of the whole.

    Long stretches stand alone, and what comes before a stretch decides where its block begins, so most blocks of the
    next request are those of the last: the longer the documents, and the more is added at the end.

    Args:
        edges: where the stretches begin, ascending, and where the last one ends.
    """
    # A power of two, so that a context that grows is not cut anew each time.
    size = _SMALLEST
    while edges and size * MOST < edges[-1] - edges[0]:
        size *= 2
    found: list[tuple[int, int]] = []
    start = edges[0] if edges else 0
    for left, right in pairwise(edges):
        if start < left and right - left >= size:
            found.append((start, left))
            start = left
        if right - start >= size:
            found.append((start, right))
            start = right
    if edges and start < edges[-1]:
        found.append((start, edges[-1]))
    return found

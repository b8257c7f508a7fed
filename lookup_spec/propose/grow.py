"""Growing a draft tree from guesses, the likeliest node first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from operator import itemgetter
from typing import NamedTuple

from lookup_spec.propose.base import Base
from lookup_spec.propose.changed import NEVER
from lookup_spec.propose.guess import Guess, Kind
from lookup_spec.propose.hazard import DEPTH_BUCKETS, Hazards
from lookup_spec.propose.tree import DraftTree

_LAST_DEPTH = len(DEPTH_BUCKETS) - 1
_SOURCES = tuple(kind.name.lower() for kind in Kind)


class _Chain(NamedTuple):
    """What may follow a node.

    Attributes:
        guess: where it comes from.
        rates: how likely each next token is, by depth bucket.
        depth: how many tokens of what was guessed at first stand before it in the tree.
    """

    guess: Guess
    rates: list[float]
    depth: int


class Ranked(NamedTuple):
    """A guess among others of other first tokens.

    Attributes:
        probability: that its first token comes.
        alone: the same, judged without looking at the others.
        guess: what is guessed.
    """

    probability: float
    alone: float
    guess: Guess


def rank(guesses: Iterable[tuple[float, Guess]], hazards: Hazards) -> list[Ranked]:
    """Orders guesses of distinct first tokens, given with their probabilities alone, the likeliest first."""
    ranked = []
    left = 1.0
    for place, (alone, guess) in enumerate(sorted(guesses, key=itemgetter(0), reverse=True)):
        given = hazards.ranked(place, alone)
        ranked.append(Ranked(left * given, alone, guess))
        left *= 1.0 - given
    return ranked


def grow(
    pending: int,
    ranked: Sequence[Ranked],
    base: Base,
    hazards: Hazards,
    limit: int,
    floor: float,
) -> DraftTree:
    """A tree of the likeliest nodes of all chains, in falling order of path probability.

    Args:
        pending: token of node 0.
        ranked: guesses of distinct first tokens, with the probability of each first token.
        base: tells where its text may go on in two ways.
        hazards: tell how each chain goes on.
        limit: most nodes besides node 0.
        floor: nodes of less path probability are not worth checking.
    """
    tokens, parents, probabilities, sources = [pending], [-1], [1.0], [""]
    worth = [item for item in ranked if item.probability >= floor]
    chains = [_Chain(item.guess, _rates(item.guess, base, hazards), 0) for item in worth]
    runs: dict[int, tuple[list[int], int]] = {}
    # One entry a chain: negative probability of its next node, the chain's number, how many of its nodes are in the
    # tree, the parent.
    heap = [(-item.probability, number, 0, 0) for number, item in enumerate(worth)]
    heapify(heap)
    node = 1
    while heap and node <= limit:
        negative, number, start, parent = heap[0]
        probability = -negative
        if probability < floor:
            break
        # The chain runs on until another one is likelier.
        stop = max(floor, -min(heap[1:3])[0]) if len(heap) > 1 else floor
        guess, rates, before = chains[number]
        coming, fork = runs.get(number) or runs.setdefault(number, base.ahead(guess, limit + 1 - node))
        place, last = start, min(len(coming), start + limit + 1 - node)
        depth = before + start
        source = _SOURCES[guess.kind]
        while place < last and probability >= stop:
            probabilities.append(probability)
            tokens.append(coming[place])
            parents.append(parent)
            sources.append(source)
            parent, node = node, node + 1
            place += 1
            depth += 1
            probability *= rates[DEPTH_BUCKETS[depth if depth < _LAST_DEPTH else _LAST_DEPTH]]
        if place < len(coming):
            heapreplace(heap, (-probability, number, place, parent))
            continue
        heappop(heap)
        if fork < NEVER:
            for branch in rank([(hazards.first(way), way) for way in base.branches(fork)], hazards):
                heappush(heap, (-probability * branch.probability, len(chains), 0, parent))
                chains.append(_Chain(branch.guess, rates, depth))
    return DraftTree(tuple(tokens), tuple(parents), tuple(probabilities), tuple(sources))


def _rates(guess: Guess, base: Base, hazards: Hazards) -> list[float]:
    return [came / tried for came, tried in hazards.further(*base.pace(guess))]

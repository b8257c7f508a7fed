"""Growing a draft tree from guesses, the likeliest node first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from operator import itemgetter
from typing import NamedTuple

from lookup_spec.propose.base import Base
from lookup_spec.propose.guess import Guess, Kind
from lookup_spec.propose.hazard import DEPTH_BUCKETS, Hazards
from lookup_spec.propose.tree import DraftTree

_LAST_DEPTH = len(DEPTH_BUCKETS) - 1
_SOURCES = {kind: kind.name.lower() for kind in Kind}


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
    chains = [item.guess for item in ranked]
    # One entry a chain: negative probability of its next node, the chain's number, its depth, the parent.
    heap = [(-item.probability, number, 0, 0) for number, item in enumerate(ranked)]
    heapify(heap)
    room = limit
    while heap and room > 0:
        negative, number, depth, parent = heap[0]
        probability = -negative
        if probability < floor:
            break
        # The chain runs on until another one is likelier.
        stop = max([floor, *(-entry[0] for entry in heap[1:3])])
        guess = chains[number]
        counts = hazards.further(guess.kind, guess.length)
        start = guess.place + depth
        fork = base.next_fork(guess.text, start + (depth == 0))
        source = _SOURCES[guess.kind]
        for token in guess.text[start : min(start + room, fork)]:
            if probability < stop:
                break
            parents.append(parent)
            parent = len(tokens)
            tokens.append(token)
            probabilities.append(probability)
            sources.append(source)
            depth += 1
            came, tried = counts[DEPTH_BUCKETS[depth if depth < _LAST_DEPTH else _LAST_DEPTH]]
            probability *= came / tried
        room = limit + 1 - len(tokens)
        if guess.place + depth == fork:
            heappop(heap)
            for branch in rank([(hazards.first(way), way) for way in base.branches(fork)], hazards):
                heappush(heap, (-probability * branch.probability, len(chains), 0, parent))
                chains.append(branch.guess)
        elif guess.place + depth < len(guess.text):
            heapreplace(heap, (-probability, number, depth, parent))
        else:
            heappop(heap)
    return DraftTree(tuple(tokens), tuple(parents), tuple(probabilities), tuple(sources))

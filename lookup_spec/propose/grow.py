"""Growing a draft tree from guesses, the likeliest node first."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush, heapreplace

from lookup_spec.propose.base import Base
from lookup_spec.propose.guess import Guess
from lookup_spec.propose.hazard import DEPTH_BUCKETS, Hazards
from lookup_spec.propose.tree import DraftTree

_LAST_DEPTH = len(DEPTH_BUCKETS) - 1


def rank(guesses: Sequence[Guess], hazards: Hazards) -> list[tuple[float, Guess]]:
    """Orders guesses of distinct first tokens, each with the probability that it comes."""
    alone = sorted([(hazards.first(guess), guess) for guess in guesses], key=_probability, reverse=True)
    ranked = []
    left = 1.0
    for place, (probability, guess) in enumerate(alone):
        given = hazards.ranked(place, probability)
        ranked.append((left * given, guess))
        left *= 1.0 - given
    return ranked


def _probability(item: tuple[float, Guess]) -> float:
    return item[0]


def grow(
    pending: int,
    ranked: Sequence[tuple[float, Guess]],
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
    chains = [guess for _, guess in ranked]
    # One entry a chain: negative probability of its next node, the chain's number, its depth, the parent.
    heap = [(-probability, number, 0, 0) for number, (probability, _) in enumerate(ranked)]
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
        source = guess.kind.name.lower()
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
            for branch_probability, branch in rank(base.branches(fork), hazards):
                heappush(heap, (-probability * branch_probability, len(chains), 0, parent))
                chains.append(branch)
        elif guess.place + depth < len(guess.text):
            heapreplace(heap, (-probability, number, depth, parent))
        else:
            heappop(heap)
    return DraftTree(tuple(tokens), tuple(parents), tuple(probabilities), tuple(sources))

"""Growing a draft tree from guesses, the likeliest node first."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heapreplace

from lookup_spec.propose.guess import Guess, Kind
from lookup_spec.propose.hazard import DEPTH_BUCKETS, Hazards, length_bucket
from lookup_spec.propose.tree import DraftTree

_LAST_DEPTH = len(DEPTH_BUCKETS) - 1


def rank(guesses: Sequence[Guess], hazards: Hazards) -> list[tuple[float, Guess]]:
    """Orders guesses of distinct first tokens, each with the probability that it comes and none before it does."""
    alone = sorted(((hazards.first(guess), guess) for guess in guesses), key=lambda item: -item[0])
    ranked = []
    left = 1.0
    for place, (probability, guess) in enumerate(alone):
        given = hazards.ranked(place, probability)
        ranked.append((left * given, guess))
        left *= 1.0 - given
    return ranked


def grow(
    pending: int, ranked: Sequence[tuple[float, Guess]], hazards: Hazards, limit: int, floor: float
) -> DraftTree:
    """A tree of the likeliest nodes of all chains, in falling order of path probability.

    Args:
        pending: token of node 0.
        ranked: guesses of distinct first tokens, with the probability of each first token.
        hazards: tell how each chain goes on.
        limit: most nodes besides node 0.
        floor: nodes of less path probability are not worth checking.
    """
    tokens, parents, probabilities, sources = [pending], [-1], [1.0], [""]
    # One entry a chain: its next node's negative probability, the chain's number, the depth, the parent.
    heap = [(-probability, number, 0, 0) for number, (probability, _) in enumerate(ranked)]
    heapify(heap)
    while heap and len(tokens) <= limit:
        negative, number, depth, parent = heap[0]
        probability = -negative
        if probability < floor:
            break
        guess = ranked[number][1]
        counts = hazards.further(guess.kind, guess.length)
        source = guess.kind.name.lower()
        # Only the root has two children in the heap; the rival is the next best head of any chain.
        rival = max((-entry[0] for entry in heap[1:3]), default=0.0)
        stop = max(rival, floor)
        for token in guess.text[guess.place + depth : guess.place + depth + limit + 1 - len(tokens)]:
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
        else:
            heappop(heap)
            continue
        heapreplace(heap, (-probability, number, depth, parent))
    return DraftTree(tuple(tokens), tuple(parents), tuple(probabilities), tuple(sources))

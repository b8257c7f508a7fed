"""Growing a draft tree from guesses, the likeliest node first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from operator import itemgetter
from typing import NamedTuple

from lookup_spec.propose.base import Base
from lookup_spec.propose.changed import NEVER
from lookup_spec.propose.ending import Ending
from lookup_spec.propose.guess import Guess, Kind
from lookup_spec.propose.hazard import DEPTH_BUCKETS, Hazards
from lookup_spec.propose.tree import DraftTree

_LAST_DEPTH = len(DEPTH_BUCKETS) - 1
_SOURCES = tuple(kind.name.lower() for kind in Kind)


class Ranked(NamedTuple):
    """Guesses of one token among those of others.

    Attributes:
        probability: that the token comes.
        alone: the same, judged by the likeliest of them without looking at others.
        guesses: the likeliest first.
    """

    probability: float
    alone: float
    guesses: list[Guess]


class _Way(NamedTuple):
    """How a guess goes on, up to the place where it may go on in two ways, or as far as is asked for.

    Attributes:
        guess: what is guessed.
        coming: its tokens.
        fork: the place behind them if the text may go on in two ways there, else ``NEVER``.
        rates: how likely each next token is, by depth bucket.
    """

    guess: Guess
    coming: list[int]
    fork: int
    rates: list[float]


class _Chain(NamedTuple):
    """What may follow a node.

    Attributes:
        way: how it goes on.
        end: where that ends, or the first of the others parts from it.
        others: ways that agree with it before that end.
        before: how many tokens of what was guessed at first stand in the tree before ``way`` begins.
    """

    way: _Way
    end: int
    others: list[_Way]
    before: int


def rank(guesses: Iterable[tuple[float, Guess]], hazards: Hazards) -> list[Ranked]:
    """Orders guesses, given with their probabilities alone, by first token, the likeliest first."""
    groups: defaultdict[int, list[tuple[float, Guess]]] = defaultdict(list)
    for alone, guess in sorted(guesses, key=itemgetter(0), reverse=True):
        groups[guess.text[guess.place]].append((alone, guess))
    # Groups stand in the order of their first guesses, the likeliest of each.
    shares = _shares([group[0][0] for group in groups.values()], hazards.ranked)
    return [
        Ranked(share, group[0][0], [guess for _, guess in group])
        for share, group in zip(shares, groups.values(), strict=True)
    ]


def _shares(alone: Iterable[float], given: Callable[[int, float], float]) -> Iterator[float]:
    """Probabilities of what excludes each other, the likeliest first, from those alone."""
    left = 1.0
    for place, probability in enumerate(alone):
        share = given(place, probability)
        yield left * share
        left *= 1.0 - share


def grow(
    pending: int,
    ranked: Sequence[Ranked],
    base: Base,
    hazards: Hazards,
    ending: Ending,
    limit: int,
    floor: float,
) -> DraftTree:
    """A tree of the likeliest nodes of all chains, in falling order of path probability.

    Guesses of one token share its node, and those behind it for as long as they agree. Where they part, what counts is
    how well each kind of guess goes on once it began well, no longer how likely it was to begin.

    Args:
        pending: token of node 0.
        ranked: guesses by first token, with the probability of each.
        base: tells where its text may go on in two ways.
        hazards: tell how each chain goes on.
        ending: of the text so far.
        limit: most nodes besides node 0.
        floor: nodes of less path probability are not worth checking.
    """
    tokens, parents, probabilities, sources = [pending], [-1], [1.0], [""]
    worth = [item for item in ranked if item.probability >= floor]
    chains: dict[int, _Chain] = {}
    # One entry a chain: negative probability of its next node, the chain's number, how many of its tokens are in the
    # tree, the parent.
    heap = [(-item.probability, number, 0, 0) for number, item in enumerate(worth)]
    heapify(heap)
    numbers = len(heap)
    node = 1
    while heap and node <= limit:
        negative, number, start, parent = heap[0]
        probability = -negative
        if probability < floor:
            break
        # The chain runs on until another one is likelier.
        stop = max(floor, -min(heap[1:3])[0]) if len(heap) > 1 else floor
        chain = chains.get(number)
        if chain is None:
            ways = [_way(guess, base, hazards, ending, limit) for guess in worth[number].guesses]
            chain = chains[number] = _chain(ways, 0, 0)
        (guess, coming, fork, rates), end, others, before = chain
        place, last = start, min(end, start + limit + 1 - node)
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
        if place < end:
            heapreplace(heap, (-probability, number, place, parent))
            continue
        heappop(heap)
        if place < len(coming):
            for share, ways in _parted([chain.way, *others], place, depth, hazards):
                heappush(heap, (-probabilities[-1] * share, numbers, place, parent))
                chains[numbers] = _chain(ways, before, place)
                numbers += 1
        elif fork < NEVER:
            for branch in rank([(hazards.first(way, ending), way) for way in base.branches(fork)], hazards):
                heappush(heap, (-probability * branch.probability, numbers, 0, parent))
                way = _Way(branch.guesses[0], *base.ahead(branch.guesses[0], limit), rates)
                chains[numbers] = _Chain(way, len(way.coming), [], depth)
                numbers += 1
    return DraftTree(tuple(tokens), tuple(parents), tuple(probabilities), tuple(sources))


def _way(guess: Guess, base: Base, hazards: Hazards, ending: Ending, count: int) -> _Way:
    rates = [came / tried for came, tried in hazards.further(*base.pace(guess), ending)]
    return _Way(guess, *base.ahead(guess, count), rates)


def _chain(ways: list[_Way], before: int, start: int) -> _Chain:
    """A chain of ways that agree up to ``start`` and behind it."""
    if len(ways) == 1:
        return _Chain(ways[0], len(ways[0].coming), [], before)
    bucket = DEPTH_BUCKETS[min(before + start + 1, _LAST_DEPTH)]
    lead = max(ways, key=lambda way: way.rates[bucket])
    end, others = len(lead.coming), [way for way in ways if way is not lead]
    for way in others:
        both = min(end, len(way.coming))
        if lead.coming[start:both] != way.coming[start:both]:
            end = next(place for place in range(start, both) if lead.coming[place] != way.coming[place])
    return _Chain(lead, end, others, before)


def _parted(ways: Sequence[_Way], place: int, depth: int, hazards: Hazards) -> list[tuple[float, list[_Way]]]:
    """Ways by their token at ``place``, the likeliest first, with the probability of each token."""
    bucket = DEPTH_BUCKETS[min(depth, _LAST_DEPTH)]
    groups: defaultdict[int, list[_Way]] = defaultdict(list)
    for way in sorted(ways, key=lambda way: way.rates[bucket], reverse=True):
        if place < len(way.coming):
            groups[way.coming[place]].append(way)
    alone = [group[0].rates[bucket] for group in groups.values()]
    return list(zip(_shares(alone, hazards.parted), groups.values(), strict=True))

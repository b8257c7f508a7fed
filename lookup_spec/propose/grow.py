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
    """How a guess goes on.

    Attributes:
        guess: what is guessed.
        tokens: what it copies, changes left out.
        rates: how likely each next token is, by depth bucket.
    """

    guess: Guess
    tokens: Sequence[int]
    rates: list[float]


class _Chain(NamedTuple):
    """What may follow a node.

    Attributes:
        source: of the way that leads.
        coming: its tokens, up to the place where it may go on in two ways, or as far as is asked for.
        fork: that place, or ``NEVER``.
        rates: how likely each next token is, by depth bucket.
        end: how many of the tokens all ways agree in.
        ways: those that agree up to there, the one that leads among them.
        before: how many tokens of what was guessed at first stand in the tree before the first of ``coming``.
    """

    source: str
    coming: Sequence[int]
    fork: int
    rates: list[float]
    end: int
    ways: list[_Way]
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
            chain = chains[number] = _chain(ways, 0, base, limit)
        source, coming, fork, rates, end, ways, before = chain
        place, last = start, min(end, start + limit + 1 - node)
        depth = before + start
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
            for share, group in _parted(ways, place, depth, hazards):
                if probabilities[-1] * share >= floor:
                    heappush(heap, (-probabilities[-1] * share, numbers, place, parent))
                    chains[numbers] = _chain(group, place, base, limit)
                    numbers += 1
        elif fork < NEVER:
            for branch in rank([(hazards.first(guess, ending), guess) for guess in base.branches(fork)], hazards):
                heappush(heap, (-probability * branch.probability, numbers, 0, parent))
                chains[numbers] = _chain([_Way(branch.guesses[0], (), rates)], 0, base, limit, depth)
                numbers += 1
    return DraftTree(tuple(tokens), tuple(parents), tuple(probabilities), tuple(sources))


def _way(guess: Guess, base: Base, hazards: Hazards, ending: Ending, count: int) -> _Way:
    return _Way(guess, base.copied(guess, count), hazards.further(*base.pace(guess), ending))


def _chain(ways: list[_Way], start: int, base: Base, count: int, before: int = 0) -> _Chain:
    """A chain of ways that agree up to ``start`` and in the next token. The one that goes on best leads."""
    lead = ways[0]
    if len(ways) > 1:
        bucket = DEPTH_BUCKETS[min(before + start + 1, _LAST_DEPTH)]
        lead = max(ways, key=lambda way: way.rates[bucket])
    coming, fork = base.ahead(lead.guess, count)
    end = len(coming)
    for way in ways:
        both = min(end, len(way.tokens))
        if way is not lead and coming[start:both] != list(way.tokens[start:both]):
            end = next(place for place in range(start, both) if coming[place] != way.tokens[place])
    return _Chain(_SOURCES[lead.guess.kind], coming, fork, lead.rates, end, ways, before)


def _parted(ways: Sequence[_Way], place: int, depth: int, hazards: Hazards) -> list[tuple[float, list[_Way]]]:
    """Ways by their token at ``place``, the likeliest first, with the probability of each token."""
    bucket = DEPTH_BUCKETS[min(depth, _LAST_DEPTH)]
    groups: defaultdict[int, list[_Way]] = defaultdict(list)
    for way in sorted(ways, key=lambda way: way.rates[bucket], reverse=True):
        if place < len(way.tokens):
            groups[way.tokens[place]].append(way)
    alone = [group[0].rates[bucket] for group in groups.values()]
    return list(zip(_shares(alone, hazards.parted), groups.values(), strict=True))

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
from lookup_spec.propose.successors import Successors
from lookup_spec.propose.tree import DraftTree

_LAST_DEPTH = len(DEPTH_BUCKETS) - 1

_SOURCES = tuple(kind.name.lower() for kind in Kind)
_SUCCESSOR = _SOURCES[Kind.SUCCESSOR]


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


class _Branch(NamedTuple):
    """Ways on behind a chain's end.

    Attributes:
        probability: of their next node.
        ways: that agree in it.
        place: of it in them.
        before: how many tokens of what was guessed at first stand in the tree before their first.
    """

    probability: float
    ways: list[_Way]
    place: int
    before: int


def leading(guesses: list[Guess]) -> list[Guess]:
    """Those of one token that tell how the text goes on behind it, or, if none does, all."""
    return [guess for guess in guesses if guess.kind != Kind.SUCCESSOR] or guesses


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
    successors: Successors,
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
        successors: tell what may follow their own guesses.
        ending: of the text so far.
        limit: most nodes besides node 0.
        floor: nodes of less path probability are not worth checking.
    """
    further = _Further(base, hazards, successors, ending, limit)
    tokens, parents, probabilities, sources = [pending], [-1], [1.0], [""]
    worth = [item for item in ranked if item.probability >= floor]
    # One entry a chain: negative probability of its next node, the chain's number, how many of its tokens are in the
    # tree, the parent.
    heap = [(-item.probability, number, 0, 0) for number, item in enumerate(worth)]
    heapify(heap)
    chains: list[_Chain | None] = [None] * len(heap)  # each made when its turn comes
    branches: list[_Branch] = []  # what those behind the first ones are made of
    node = 1
    while heap and node <= limit:
        negative, number, start, parent = heap[0]
        probability = -negative
        if probability < floor:
            break
        # The chain runs on until another one is likelier.
        stop = max(floor, -min(heap[1:3])[0]) if len(heap) > 1 else floor
        chain = chains[number]
        if chain is None:
            first = number < len(worth)
            chain = further.begun(worth[number]) if first else further.chain(*branches[number - len(worth)][1:])
            chains[number] = chain
        source, coming, _, rates, end, _, before = chain
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
        for branch in further.behind(chain, probabilities[-1], probability, (tokens[parents[parent]], tokens[parent])):
            if branch.probability >= floor:
                heappush(heap, (-branch.probability, len(chains), branch.place, parent))
                chains.append(None)
                branches.append(branch)
    return DraftTree(tuple(tokens), tuple(parents), tuple(probabilities), tuple(sources))


class _Further:
    """How guesses go on, and what comes behind their ends.

    Args:
        base: tells where its text may go on in two ways.
        hazards: tell how each chain goes on.
        successors: tell what may follow their own guesses.
        ending: of the text so far.
        limit: no more tokens of a chain are asked for.
    """

    def __init__(self, base: Base, hazards: Hazards, successors: Successors, ending: Ending, limit: int) -> None:
        self._base, self._hazards, self._successors = base, hazards, successors
        self._ending, self._limit = ending, limit

    def begun(self, item: Ranked) -> _Chain:
        """The chain of guesses of one token."""
        base, further = self._base, self._hazards.further
        ways = [
            _Way(guess, base.copied(guess, self._limit), further(*base.pace(guess), self._ending))
            for guess in leading(item.guesses)
        ]
        return self.chain(ways, 0, 0)

    def chain(self, ways: list[_Way], start: int, before: int) -> _Chain:
        """A chain of ways that agree up to ``start`` and in the next token. The one that goes on best leads."""
        lead = ways[0]
        if len(ways) > 1:
            bucket = DEPTH_BUCKETS[min(before + start + 1, _LAST_DEPTH)]
            lead = max(ways, key=lambda way: way.rates[bucket])
        coming, fork = self._base.ahead(lead.guess, self._limit)
        end = len(coming)
        for way in ways:
            both = min(end, len(way.tokens))
            if way is not lead and coming[start:both] != list(way.tokens[start:both]):
                end = next(place for place in range(start, both) if coming[place] != way.tokens[place])
        return _Chain(_SOURCES[lead.guess.kind], coming, fork, lead.rates, end, ways, before)

    def behind(self, chain: _Chain, reached: float, goes_on: float, last_two: tuple[int, int]) -> Iterator[_Branch]:
        """The branches behind a chain's end.

        Args:
            chain: all that its ways agree in is in the tree.
            reached: probability of the last of these nodes.
            goes_on: that the next one comes, whatever it is.
            last_two: tokens of the last two nodes.
        """
        if chain.end < len(chain.coming):
            return self._parted(chain, reached)
        if chain.fork < NEVER:
            return self._forked(chain, goes_on)
        if chain.source == _SUCCESSOR:
            return self._succeeded(chain, reached, self._successors.after(*last_two))
        return iter(())

    def _parted(self, chain: _Chain, reached: float) -> Iterator[_Branch]:
        """Ways that part, the likeliest first."""
        place, hazards = chain.end, self._hazards
        bucket = DEPTH_BUCKETS[min(chain.before + place, _LAST_DEPTH)]
        groups: defaultdict[int, list[_Way]] = defaultdict(list)
        for way in sorted(chain.ways, key=lambda way: way.rates[bucket], reverse=True):
            if place < len(way.tokens):
                groups[way.tokens[place]].append(way)
        shares = _shares([group[0].rates[bucket] for group in groups.values()], hazards.parted)
        for share, group in zip(shares, groups.values(), strict=True):
            yield _Branch(reached * share, group, place, 0)

    def _forked(self, chain: _Chain, goes_on: float) -> Iterator[_Branch]:
        """The two ways on where the text may change."""
        first, ending = self._hazards.first, self._ending
        guesses = [(first(guess, ending), guess) for guess in self._base.branches(chain.fork)]
        before = chain.before + len(chain.coming)
        for item in rank(guesses, self._hazards):
            yield _Branch(goes_on * item.probability, [_Way(item.guesses[0], (), chain.rates)], 0, before)

    def _succeeded(self, chain: _Chain, reached: float, guesses: Iterable[Guess]) -> Iterator[_Branch]:
        """Successors of a successor."""
        for guess in guesses:
            probability = reached * self._hazards.first(guess, self._ending)
            yield _Branch(probability, [_Way(guess, guess.text, chain.rates)], 0, chain.before + 1)

"""Growing a draft tree from guesses, the likeliest node first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from operator import itemgetter
from typing import NamedTuple

from lookup_spec.propose.base import Base
from lookup_spec.propose.changed import NEVER
from lookup_spec.propose.counts import Counts
from lookup_spec.propose.ending import Ending
from lookup_spec.propose.guess import Guess, Kind
from lookup_spec.propose.hazard import DEPTH_BUCKETS, Hazards, Rates
from lookup_spec.propose.successors import Successors
from lookup_spec.propose.tree import DraftTree

_LAST_DEPTH = len(DEPTH_BUCKETS) - 1

_SOURCES = {kind: kind.name.lower() for kind in Kind}
_SUCCESSOR = _SOURCES[Kind.SUCCESSOR]


class Judged(NamedTuple):
    """A guess, judged alone.

    Attributes:
        probability: that its token comes.
        guess: what is guessed.
        counts: how often such a guess came true.
    """

    probability: float
    guess: Guess
    counts: Counts


class Ranked(NamedTuple):
    """Guesses of one token among those of others.

    Attributes:
        probability: that the token comes.
        token: what is guessed.
        guesses: the likeliest first.
        counts: how often such a group came where better ones did not; None for the best one.
    """

    probability: float
    token: int
    guesses: list[Judged]
    counts: Counts | None


class _Way(NamedTuple):
    """How a guess goes on.

    Attributes:
        guess: what is guessed.
        tokens: what it copies, changes left out.
        rates: how likely each next token is, by depth bucket.
    """

    guess: Guess
    tokens: Sequence[int]
    rates: Rates


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
    rates: Rates
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


def judge(guesses: Iterable[Guess], hazards: Hazards, ending: Ending) -> list[Judged]:
    """Judges each guess by itself."""
    judged = []
    for guess in guesses:
        counts = hazards.first(guess, ending)
        judged.append(Judged(counts[0] / counts[1], guess, counts))
    return judged


def leading(judged: list[Judged]) -> list[Guess]:
    """Those of one token that tell how the text goes on behind it, or, if none does, all."""
    guesses = [item.guess for item in judged]
    return [guess for guess in guesses if guess.kind != Kind.SUCCESSOR] or guesses


def rank(judged: Iterable[Judged], hazards: Hazards, least: float) -> list[Ranked]:
    """Orders guesses by first token, the likeliest first; those of less than ``least`` by themselves are not looked at
    any closer."""
    groups: dict[int, list[Judged]] = {}
    for item in sorted(judged, key=itemgetter(0), reverse=True):
        guess = item.guess
        token = guess.text[guess.place]
        group = groups.get(token)
        if group is None:
            groups[token] = [item]
        else:
            group.append(item)
    # Groups stand in the order of their first guesses, the likeliest of each.
    ranked: list[Ranked] = []
    left = 1.0
    for place, (token, group) in enumerate(groups.items()):
        alone = group[0].probability
        if alone < least:
            ranked.append(Ranked(0.0, token, group, None))
            continue
        counts = hazards.ranked(place, alone) if place else None
        share = alone if counts is None else counts[0] / counts[1]
        ranked.append(Ranked(left * share, token, group, counts))
        left *= 1.0 - share
    return ranked


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
    nodes = [(pending, -1, 1.0, "")]
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
            nodes.append((coming[place], parent, probability, source))
            parent, node = node, node + 1
            place += 1
            depth += 1
            probability *= rates[DEPTH_BUCKETS[depth if depth < _LAST_DEPTH else _LAST_DEPTH]]
        if place < end:
            heapreplace(heap, (-probability, number, place, parent))
            continue
        heappop(heap)
        token, before, reached, _ = nodes[parent]
        for branch in further.behind(chain, reached, probability, (nodes[before][0], token)):
            if branch.probability >= floor:
                heappush(heap, (-branch.probability, len(chains), branch.place, parent))
                chains.append(None)
                branches.append(branch)
    return DraftTree(*zip(*nodes, strict=True))


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
        base, further, guesses = self._base, self._hazards.further, leading(item.guesses)
        # One alone is compared with none.
        count = self._limit if len(guesses) > 1 else 0
        ways = [_Way(guess, base.copied(guess, count), further(*base.pace(guess), self._ending)) for guess in guesses]
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
        for rank, group in enumerate(groups.values()):
            alone = group[0].rates[bucket]
            share = alone
            if rank:
                came, tried = hazards.parted(rank, alone)
                share = came / tried
            yield _Branch(reached * share, group, place, 0)
            reached *= 1.0 - share

    def _forked(self, chain: _Chain, goes_on: float) -> Iterator[_Branch]:
        """The two ways on where the text may change."""
        before = chain.before + len(chain.coming)
        judged = judge(self._base.branches(chain.fork), self._hazards, self._ending)
        for item in rank(judged, self._hazards, 0.0):
            yield _Branch(goes_on * item.probability, [_Way(item.guesses[0].guess, (), chain.rates)], 0, before)

    def _succeeded(self, chain: _Chain, reached: float, guesses: Iterable[Guess]) -> Iterator[_Branch]:
        """Successors of a successor."""
        for probability, guess, _ in judge(guesses, self._hazards, self._ending):
            yield _Branch(reached * probability, [_Way(guess, guess.text, chain.rates)], 0, chain.before + 1)

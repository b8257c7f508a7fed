"""Trees of guesses that share nodes, against a twin that follows every path on its own."""

from __future__ import annotations

from collections.abc import Iterator
from math import isclose

from hypothesis import given, settings
from hypothesis import strategies as st

from lookup_spec.propose.base import Base
from lookup_spec.propose.ending import Ending, Endings
from lookup_spec.propose.grow import Ranked, grow, judge, leading, rank
from lookup_spec.propose.guess import Guess, Kind
from lookup_spec.propose.hazard import DEPTH_BUCKETS, Hazards, shipped
from lookup_spec.propose.successors import Successors

KINDS = (Kind.INSERT, Kind.SKIP, Kind.NEAR, Kind.AHEAD, Kind.ELSEWHERE, Kind.ANSWER, Kind.ALIKE, Kind.SYNTAX)
Path = tuple[int, ...]
Way = tuple[tuple[int, ...], list[float]]
"""The tokens of a guess and, by depth, how likely each is after those before it."""


@st.composite
def guesses(draw: st.DrawFn) -> list[Guess]:
    """Places in one text of few tokens, so that many begin alike and part sooner or later."""
    text = draw(st.lists(st.integers(0, 1), min_size=1, max_size=40))
    places = draw(st.lists(st.integers(0, len(text) - 1), min_size=1, max_size=8))
    return [
        Guess(draw(st.sampled_from(KINDS)), text, place, draw(st.integers(0, 12)), draw(st.integers(0, 3)))
        for place in places
    ]


hazards = st.sampled_from([shipped("edit"), {}]).map(Hazards)
endings = st.sampled_from(list(Ending))


def bucket(depth: int) -> int:
    return DEPTH_BUCKETS[min(depth, len(DEPTH_BUCKETS) - 1)]


def slow_nodes(ranked: list[Ranked], hazards: Hazards, ending: Ending, limit: int) -> dict[Path, float]:
    """Each path that any guess goes along, and how likely all of it comes."""

    def way(guess: Guess) -> Way:
        tokens = tuple(guess.text[guess.place : guess.place + limit])
        rates = hazards.further(guess.kind, guess.length, ending)
        return tokens, [rates[bucket(depth)] for depth in range(limit + 2)]

    def along(path: Path, ways: list[Way], lead: Way, probability: float) -> Iterator[tuple[Path, float]]:
        at = len(path)
        path = (*path, lead[0][at])
        yield path, probability
        if at + 1 == len(lead[0]):
            return
        going = [way for way in ways if at + 1 < len(way[0])]
        if all(way[0][at + 1] == lead[0][at + 1] for way in going):
            yield from along(path, ways, lead, probability * lead[1][at + 1])
            return
        going.sort(key=lambda way: way[1][at + 1], reverse=True)
        for place, token in enumerate(dict.fromkeys(way[0][at + 1] for way in going)):
            group = [way for way in going if way[0][at + 1] == token]
            share = group[0][1][at + 1]
            if place:
                came, tried = hazards.parted(place, share)
                share = came / tried
            yield from along(path, group, max(group, key=lambda way: way[1][at + 2]), probability * share)
            probability *= 1.0 - share

    found: dict[Path, float] = {}
    for item in ranked:
        ways = [way(guess) for guess in leading(item.guesses)]
        for path, probability in along((), ways, max(ways, key=lambda way: way[1][1]), item.probability):
            assert path not in found
            found[path] = probability
    return found


@settings(max_examples=150)
@given(guesses(), hazards, endings, st.integers(1, 30), st.sampled_from([0.0, 0.025, 0.2]))
def test_a_tree_holds_the_likeliest_nodes_of_all_paths(
    guesses: list[Guess], hazards: Hazards, ending: Ending, limit: int, floor: float
) -> None:
    """Guesses share nodes for as long as they agree; of all nodes that any of them has, the likeliest are drafted, each
    with the probability of its whole path, none below the floor."""
    base = Base([0], 0, Endings(None))
    ranked = rank(judge(guesses, hazards, ending), hazards, 0.0)
    tree = grow(9, ranked, base, hazards, Successors(), ending, limit, floor)
    slow = {
        path: probability
        for path, probability in slow_nodes(ranked, hazards, ending, limit).items()
        if probability >= floor
    }
    paths: list[Path] = [()]
    for node in range(1, len(tree)):
        paths.append((*paths[tree.parents[node]], tree.tokens[node]))
        assert isclose(tree.probabilities[node], slow[paths[-1]])
    assert len(set(paths)) == len(paths)
    best = sorted(slow.values(), reverse=True)[:limit]
    assert len(tree) == len(best) + 1
    assert all(isclose(one, other) for one, other in zip(tree.probabilities[1:], best, strict=True))


@settings(max_examples=50)
@given(guesses(), hazards, endings)
def test_ranks_share_what_better_guesses_leave(guesses: list[Guess], hazards: Hazards, ending: Ending) -> None:
    """Guesses of one token are one, as good as the best of them; it gets its share of what all better ones leave."""
    judged = judge(guesses, hazards, ending)
    ranked = rank(judged, hazards, 0.0)
    left, before = 1.0, 1.0
    for place, item in enumerate(ranked):
        group = [other for other in judged if other.guess.token == item.token]
        assert sorted(item.guesses) == sorted(group)
        alone = max(other.probability for other in group)
        assert alone <= before
        came, tried = hazards.ranked(place, alone) if place else (alone, 1.0)
        assert isclose(item.probability, left * came / tried)
        left, before = left - item.probability, alone
    assert len({item.token for item in ranked}) == len(ranked) == len({guess.token for guess in guesses})

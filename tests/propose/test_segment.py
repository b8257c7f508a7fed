from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup_spec.propose.guess import matched
from lookup_spec.propose.segment import MAX_NGRAM, TOKEN_BITS, Segment

LARGEST = (1 << TOKEN_BITS) - 1

tokens = st.lists(st.integers(0, 3), max_size=40)
repeats = st.builds(lambda unit, times, end: unit * times + end, tokens, st.integers(0, 8), tokens)


def places(ids: Sequence[int], ngram: Sequence[int]) -> list[int]:
    """Where an n-gram ends with another token behind it."""
    n = len(ngram)
    return [end for end in range(n, len(ids)) if list(ids[end - n : end]) == list(ngram)]


def slow_matches(ids: Sequence[int], text: Sequence[int]) -> list[tuple[int, list[int]]]:
    """Length and places of each n-gram that ends the text and whose remainder stands in several places."""
    found = []
    for n in range(1, min(MAX_NGRAM, len(text)) + 1):
        ngram = list(text[-n:])
        several = n == 1 or len(places(ids, ngram[1:])) > 1
        if several and places(ids, ngram):
            found.append((n, places(ids, ngram)))
    return found[::-1]


def fast_matches(segment: Segment, text: Sequence[int]) -> list[tuple[int, list[int]]]:
    return [(match.length, list(match.positions[match.start : match.end])) for match in segment.matches(text)]


@given(repeats, repeats)
def test_matches_equal_brute_force(ids: list[int], text: list[int]) -> None:
    """Every indexed n-gram that ends the text is found at all its places, longest first."""
    assert fast_matches(Segment(ids), text) == slow_matches(ids, text)


@given(st.lists(st.sampled_from([0, 1, LARGEST]), max_size=30), st.lists(st.sampled_from([0, 1, LARGEST]), max_size=9))
def test_the_largest_ids_are_kept_apart(ids: list[int], text: list[int]) -> None:
    """Ids at the ends of their range are told from each other at every depth."""
    assert fast_matches(Segment(ids), text) == slow_matches(ids, text)


@pytest.mark.parametrize(
    ("phrases", "text", "found"),
    [
        (["na", "an", "banana split"], "banana spin", [(1, "an"), (2, "na"), (3, "an"), (4, "na")]),
        (["to", "totem", "emu"], "xxtotemuxx", [(2, "to"), (2, "totem"), (5, "emu")]),
        (["ov", "er", "mover"], "moved over", [(1, "ov"), (6, "ov"), (8, "er")]),
        (["👩", "👩‍👧"], "-👩‍👧-", [(1, "👩"), (1, "👩‍👧")]),
    ],
)
def test_a_longer_phrase_that_nearly_matches_hides_no_shorter_one(
    phrases: list[str], text: str, found: list[tuple[int, str]]
) -> None:
    """Of phrases that stand inside each other, or begin as longer ones do, every place in a text is found; what is
    longer than the index is deep is found by comparing backwards."""
    known = [ord(char) for char in text]
    places = []
    for phrase in phrases:
        # Twice and with different ends, so that what follows the phrase is a place of it.
        ids = [ord(char) for char in f"{phrase}1{phrase}2"]
        segment = Segment(ids)
        for end in range(1, len(text) + 1):
            matches = segment.matches(known[:end])
            indexed = any(len(phrase) in match.positions[match.start : match.end] for match in matches)
            if indexed and matched(known[:end], ids, len(phrase)) == len(phrase):
                places.append((end - len(phrase), phrase))
    assert sorted(places) == found


@given(repeats.filter(bool), st.integers(0, 60), st.integers(0, 5), st.integers(0, 5))
def test_around_gives_the_nearest_places(ids: list[int], pivot: int, before: int, after: int) -> None:
    """``around`` gives the places nearest to the pivot on each side."""
    for match in Segment(ids).matches(ids[:1]):
        ends = places(ids, ids[:1])
        below, above = [end for end in ends if end < pivot], [end for end in ends if end >= pivot]
        assert list(match.around(pivot, before, after)) == below[len(below) - min(before, len(below)) :] + above[:after]
        assert list(match.latest(after)) == ends[len(ends) - min(after, len(ends)) :]


@pytest.mark.parametrize("ids", [[], [5], [7] * 64_000, [1, 2] * 30_000, list(range(20_000))])
def test_size_is_bounded_for_any_text(ids: list[int]) -> None:
    """Empty, single, endlessly repeated and never repeated tokens are indexed in at most 100 bytes a token."""
    segment = Segment(ids)
    assert segment.nbytes <= 100 * len(ids) + 1_000
    assert len(segment) == len(ids)


@pytest.mark.parametrize("ids", [[-1], [LARGEST + 1]])
def test_ids_out_of_range_are_refused(ids: list[int]) -> None:
    """A token id that the index cannot hold is refused with the range."""
    with pytest.raises(ValueError, match="token ids must lie in 0 to"):
        Segment(ids)


def test_threads_may_search_one_segment() -> None:
    """Look-ups in several threads do not disturb each other while other segments are built."""
    ids = [1, 2, 3, 1, 2, 4, 1, 2, 3, 5] * 20
    segment = Segment(ids)
    expected = fast_matches(segment, ids)

    def work(seed: int) -> bool:
        Segment([*ids, seed])
        return all(fast_matches(segment, ids) == expected for _ in range(20))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(1, 17)))

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup_spec.propose.segment import Segment
from lookup_spec.propose.store import SegmentStore


def text(seed: int, length: int = 200) -> tuple[int, ...]:
    """A text like no other."""
    chooser = random.Random(seed)
    return tuple(chooser.randrange(2000) for _ in range(length))


def test_the_same_content_is_indexed_once() -> None:
    """Asking again for an equal text gives the segment that was built before."""
    store = SegmentStore()
    segment = store.get("a", text(1))
    assert store.get("a", (*text(1)[:-1], text(1)[-1])) is segment
    assert len(store) == 1


def test_tenants_share_nothing() -> None:
    """A tenant never gets a segment that another tenant's request built, even of equal content."""
    store = SegmentStore()
    mine, theirs = store.get("a", text(1)), store.get("b", text(1))
    assert mine is not theirs
    store.forget("a")
    assert len(store) == 1
    assert store.nbytes == theirs.nbytes
    assert store.get("b", text(1)) is theirs


def test_memory_stays_below_the_limit_and_the_latest_stay() -> None:
    """After hundreds of different texts the limit holds, the latest are kept, the oldest were dropped."""
    size = Segment(text(0)).nbytes
    store = SegmentStore(max_bytes=20 * size)
    segments = [store.get("a", text(seed)) for seed in range(300)]
    assert store.nbytes <= store.max_bytes
    assert 10 <= len(store) <= 22
    assert store.get("a", text(299)) is segments[299]
    assert store.get("a", text(0)) is not segments[0]


def test_use_keeps_a_segment() -> None:
    """Dropped is what was not used for longest, not what was built first."""
    size = max(Segment(text(seed)).nbytes for seed in range(20))
    store = SegmentStore(max_bytes=3 * size)
    kept = store.get("a", text(0))
    for seed in range(1, 20):
        store.get("a", text(seed))
        assert store.get("a", text(0)) is kept


@pytest.mark.parametrize("max_bytes", [0, 10])
def test_a_limit_below_one_segment_keeps_nothing(max_bytes: int) -> None:
    """A text larger than the whole limit is indexed for its request and not kept."""
    store = SegmentStore(max_bytes)
    assert store.get("a", text(1)).ids == text(1)
    assert (len(store), store.nbytes) == (0, 0)


def test_a_negative_limit_is_refused() -> None:
    """A limit below zero is refused by value."""
    with pytest.raises(ValueError, match="max_bytes is -1"):
        SegmentStore(-1)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 9)), max_size=40), st.integers(0, 60_000))
def test_the_account_is_right_after_any_use(uses: list[tuple[str, int]], max_bytes: int) -> None:
    """The bytes told are those of the kept segments, whatever was asked for in whatever order."""
    store = SegmentStore(max_bytes)
    for tenant, seed in uses:
        assert store.get(tenant, text(seed, 30)).ids == text(seed, 30)
        assert store.nbytes <= max_bytes
    for tenant in "ab":
        store.forget(tenant)
    assert (len(store), store.nbytes) == (0, 0)

from __future__ import annotations

import random
import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

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
    assert store.nbytes == alone("b", text(1))
    assert store.get("b", text(1)) is theirs


def test_memory_stays_below_the_limit_and_the_latest_stay() -> None:
    """A shared store does not grow past its limit: after hundreds of different texts the latest are kept, the oldest
    were dropped."""
    store = SegmentStore(max_bytes=20 * alone("a", text(0)))
    segments = [store.get("a", text(seed)) for seed in range(300)]
    assert store.nbytes <= store.max_bytes
    assert 10 <= len(store) <= 22
    assert store.get("a", text(299)) is segments[299]
    assert store.get("a", text(0)) is not segments[0]


def test_use_keeps_a_segment() -> None:
    """Dropped is what was not used for longest, not what was built first."""
    store = SegmentStore(max_bytes=3 * max(alone("a", text(seed)) for seed in range(20)))
    kept = store.get("a", text(0))
    for seed in range(1, 20):
        store.get("a", text(seed))
        assert store.get("a", text(0)) is kept


@pytest.mark.parametrize("max_bytes", [0, 10])
def test_a_limit_below_one_segment_keeps_nothing(max_bytes: int) -> None:
    """A text larger than the whole limit is indexed for its request and not kept."""
    store = SegmentStore(max_bytes)
    assert len(store.get("a", text(1))) == len(text(1))
    assert (len(store), store.nbytes) == (0, 0)


def test_a_negative_limit_is_refused() -> None:
    """A limit below zero is refused by value."""
    with pytest.raises(ValueError, match="max_bytes is -1"):
        SegmentStore(-1)


class SlowStore:
    """Keeps a list, the least recently used first, and adds sizes up from scratch."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.kept: list[tuple[str, tuple[int, ...], Segment, int]] = []

    def get(self, tenant: str, ids: tuple[int, ...], given: Segment, size: int) -> None:
        """Takes in that ``given`` was the answer; it must be the kept one if there is one."""
        found = [entry for entry in self.kept if entry[:2] == (tenant, ids)]
        for entry in found:
            assert given is entry[2]
            self.kept.remove(entry)
        if not found:
            assert all(given is not entry[2] for entry in self.kept)
        if size <= self.max_bytes:
            self.kept.append((tenant, ids, given, size))
        while sum(entry[3] for entry in self.kept) > self.max_bytes:
            del self.kept[0]

    def forget(self, tenant: str) -> None:
        self.kept = [entry for entry in self.kept if entry[0] != tenant]


def alone(tenant: str, ids: tuple[int, ...]) -> int:
    """What one segment takes in a store."""
    store = SegmentStore()
    store.get(tenant, ids)
    return store.nbytes


uses = st.lists(st.tuples(st.sampled_from(["a", "b", "tenant"]), st.none() | st.integers(0, 9)), max_size=40)


@given(uses, st.integers(0, 12_000))
def test_any_use_equals_the_slow_twin(uses: list[tuple[str, int | None]], max_bytes: int) -> None:
    """Whatever is asked for and forgotten in whatever order, the same segments are kept as by a plain list."""
    store, twin = SegmentStore(max_bytes), SlowStore(max_bytes)
    for tenant, seed in uses:
        if seed is None:
            store.forget(tenant)
            twin.forget(tenant)
        else:
            ids = text(seed, 15 * seed)
            segment = store.get(tenant, ids)
            assert len(segment) == len(ids)
            twin.get(tenant, ids, segment, alone(tenant, ids))
        assert len(store) == len(twin.kept)
        assert store.nbytes == sum(entry[3] for entry in twin.kept) <= max_bytes


@pytest.mark.parametrize("length", [0, 3, 30, 300, 3000])
def test_the_limit_is_of_real_memory(length: int) -> None:
    """Many small segments, or few large ones, take no more memory than the limit says, and half of it at least."""
    store = SegmentStore(max_bytes=200_000)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for seed in range(600 if length < 300 else 60):
            store.get("a", (seed, *text(seed, length)))
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert 0.5 * store.nbytes <= taken <= 1.05 * store.nbytes


def test_threads_keep_the_account() -> None:
    """Threads that ask for the same and other texts at once leave a store whose account is right."""
    store = SegmentStore(max_bytes=60_000)
    with ThreadPoolExecutor(8) as pool:
        segments = list(pool.map(lambda seed: store.get("ab"[seed % 2], text(seed % 23)), range(400)))
    assert all(len(segment) == 200 for segment in segments)
    assert 0 < store.nbytes <= store.max_bytes
    for tenant in "ab":
        store.forget(tenant)
    assert (len(store), store.nbytes) == (0, 0)


@pytest.mark.parametrize("ids", [[-1], [1 << 31]])
def test_ids_out_of_range_are_refused(ids: list[int]) -> None:
    """A token id that cannot be indexed is refused, with a store that keeps and with one that does not."""
    for store in (SegmentStore(), SegmentStore(0)):
        with pytest.raises(ValueError, match="token id"):
            store.get("a", ids)
        assert len(store) == 0


RESIDENT = """
import gc, random, sys
from lookup_spec.propose.prompt import Prompt, Span
from lookup_spec.propose.proposer import LookupProposer
from lookup_spec.propose.store import SegmentStore

def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

requests, limit = map(int, sys.argv[1:])
start, some, chooser, store = resident(), 0, random.Random(0), SegmentStore(limit)
for number in range(requests):
    ids = tuple(chooser.choices(range(50_000), k=2000))
    proposer = LookupProposer(store)
    proposer.begin(Prompt(ids, (Span(0, len(ids), "base"),)))
    proposer.observe(ids[1000:1010])
    assert ids[1010:1020] == proposer.propose(16).tokens[1:11]
    if number + 1 == requests // 5:
        some = resident()
print(resident() / some, (resident() - start) / 2**20, len(store))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="tells its memory in another way")
@pytest.mark.parametrize(("requests", "limit"), [(5000, 32 << 20), (1000, 1000), (1000, 0)])
def test_thousands_of_requests_do_not_fill_the_memory(requests: int, limit: int) -> None:
    """After 5,000 requests of 2,000 new tokens the process holds at most a tenth more than after 1,000, and at most the
    limit and 64 MB more than it began with; it works as well with a limit below one request, or of nothing."""
    arguments = [sys.executable, "-c", RESIDENT, str(requests), str(limit)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    growth, more, kept = map(float, done.stdout.split())
    assert growth <= 1.1
    assert more <= limit / 2**20 + 64
    assert (kept > 0) == (limit > 1000)

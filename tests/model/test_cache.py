"""The cache against a slow twin that keeps a plain list of rows."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup_spec.model.cache import KVCache, KVRows, Seat

LAYERS, HEADS, KEY_DIM, VALUE_DIM = 2, 2, 3, 4


def rows_of(first: int, count: int, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Keys and values of ``count`` rows, each filled with a number of its own."""
    marks = torch.arange(first, first + count, dtype=torch.float32) + 1e5 * layer
    keys = marks[None, :, None].expand(HEADS, count, KEY_DIM)
    return keys, -marks[None, :, None].expand(HEADS, count, VALUE_DIM)


class Twin:
    """What a cache is: the marks of the committed rows, in order."""

    def __init__(self) -> None:
        self.committed: list[int] = []
        self.written: list[int] = []


def seat_for(capacity: int) -> Seat:
    """Of somebody whose rows were not finite."""
    return Seat(
        {
            layer: tuple(torch.full((HEADS, capacity, dim), float("nan")) for dim in (KEY_DIM, VALUE_DIM))
            for layer in range(LAYERS)
        },
        capacity,
    )


def assert_holds(cache: KVCache, marks: list[int]) -> None:
    for layer, (keys, values) in cache.rows(0, len(marks)).layers.items():
        expected = torch.tensor(marks, dtype=torch.float32) + 1e5 * layer
        assert torch.equal(keys, expected[None, :, None].expand_as(keys))
        assert torch.equal(values, -expected[None, :, None].expand_as(values))


@st.composite
def actions(draw):
    count = draw(st.integers(1, 90))
    kind = draw(st.sampled_from(["step", "step", "step", "straight", "truncate", "write", "sit", "leave"]))
    path = draw(st.lists(st.integers(0, count - 1), unique=True, max_size=count).map(sorted))
    return kind, count, path, draw(st.floats(0, 1))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 130), st.lists(actions(), max_size=12))
def test_any_steps_leave_the_committed_rows_alone(capacity, steps):
    """Whatever is written, kept, forgotten, grown or moved, the views hold the committed rows and the new ones."""
    cache, twin, mark = KVCache(capacity), Twin(), 0
    for kind, count, path, part in steps:
        if kind == "truncate":
            length = int(part * len(twin.committed))
            cache.truncate(length)
            del twin.committed[length:]
            twin.written = []
        elif kind in ("sit", "leave"):
            seat = seat_for(max(count, cache.length)) if kind == "sit" else None
            cache.move(seat)
            twin.written = []
            assert (cache.seat, cache.nbytes == 0) == (seat, seat is not None or cache.length == 0)
        else:
            twin.written = list(range(mark, mark + count))
            expected = torch.tensor(twin.committed + twin.written, dtype=torch.float32)
            for layer in range(LAYERS):
                keys, values = cache.write(layer, *rows_of(mark, count, layer))
                assert keys.shape == (HEADS, len(expected), KEY_DIM)
                assert values.shape == (HEADS, len(expected), VALUE_DIM)
                assert torch.equal(keys, (expected + 1e5 * layer)[None, :, None].expand_as(keys))
                assert torch.equal(values, -(expected + 1e5 * layer)[None, :, None].expand_as(values))
            mark += count
            if kind != "write":
                kept = list(range(count)) if kind == "straight" else path
                cache.commit(kept)
                twin.committed += [twin.written[row] for row in kept]
        assert cache.length == len(twin.committed)
        assert_holds(cache, twin.committed)


@pytest.mark.parametrize("path", [[1, 0], [0, 0], [3], [-1], [0, 3], [-2, 1]])
def test_only_ascending_rows_of_the_last_step_can_be_kept(path):
    """Any other path is refused and changes nothing."""
    cache = KVCache()
    cache.write(0, *rows_of(0, 3, 0))
    with pytest.raises(ValueError, match="ascending rows among the 3 written"):
        cache.commit(path)
    assert cache.length == 0


def committed(count: int, first: int = 0) -> KVCache:
    cache = KVCache(200)
    for layer in range(LAYERS):
        cache.write(layer, *rows_of(first, count, layer))
    cache.commit(range(count))
    return cache


def marks_of(rows: KVRows, layer: int) -> list[int]:
    keys, values = rows.layers[layer]
    assert keys.shape == (HEADS, rows.length, KEY_DIM)
    assert torch.equal(values[0, :, 0], -keys[0, :, 0])
    return [int(mark - 1e5 * layer) for mark in keys[0, :, 0]]


@given(st.integers(0, 70), st.integers(0, 70), st.integers(0, 70), st.booleans())
@settings(max_examples=60, deadline=None)
def test_rows_move_from_cache_to_cache(start, end, tail, detached):
    """Whether lent or given away, what is appended is what was taken, and own rows go on behind it."""
    start, end = sorted((start, end))
    source = committed(70)
    rows = source.detach(start, end) if detached else source.rows(start, end)
    half = (end - start) // 2
    cache = KVCache()
    cache.append(rows.part(0, half))
    cache.append(rows.part(half, end - start).clone())
    assert cache.length == end - start
    for layer in range(LAYERS):
        cache.write(layer, *rows_of(500, tail, layer))
    cache.commit(range(tail))
    for layer in range(LAYERS):
        expected = [*range(start, end), *range(500, 500 + tail)]
        assert marks_of(cache.rows(0, cache.length), layer) == expected if expected else cache.length == 0
    assert source.length == (0 if detached else 70)


def test_what_is_given_away_takes_no_more_memory_than_it_holds():
    """A cache has nothing left of it."""
    cache = committed(70)
    rows = cache.detach(10, 30)
    sizes = [tensor.untyped_storage().nbytes() for pair in rows.layers.values() for tensor in pair]
    assert sum(sizes) == LAYERS * HEADS * (KEY_DIM + VALUE_DIM) * 20 * 4
    assert (cache.nbytes, cache.capacity, cache.length) == (0, 0, 0)


def test_reserved_room_is_taken_when_it_is_needed_and_lasts():
    """Up to what was reserved a cache grows once, and never beyond it."""
    cache = KVCache()
    cache.reserve(100)
    assert (cache.capacity, cache.nbytes) == (128, 0)
    sizes = set()
    for mark in range(128):
        for layer in range(LAYERS):
            cache.write(layer, *rows_of(mark, 1, layer))
        cache.commit([0])
        sizes.add(cache.nbytes)
    assert sizes == {LAYERS * HEADS * (KEY_DIM + VALUE_DIM) * 128 * 4}
    cache.reserve(10)
    assert cache.capacity == 128


@pytest.mark.parametrize(("start", "end"), [(0, 4), (-1, 2), (2, 1)])
def test_rows_that_are_not_there_cannot_be_taken(start, end):
    """A refusal changes nothing."""
    cache = committed(3)
    for take in (cache.rows, cache.detach):
        with pytest.raises(ValueError, match="a cache of 3 tokens has no rows"):
            take(start, end)
    assert cache.length == 3


def test_rows_are_kept_at_most_once():
    """A commit without a write in between has no rows to keep, after a truncation neither."""
    cache = KVCache()
    cache.write(0, *rows_of(0, 2, 0))
    cache.commit([0])
    with pytest.raises(ValueError, match="0 written"):
        cache.commit([1])
    cache.write(0, *rows_of(2, 2, 0))
    cache.truncate(1)
    with pytest.raises(ValueError, match="0 written"):
        cache.commit([0])


@pytest.mark.parametrize("length", [-1, 3])
def test_a_cache_cannot_be_cut_to_what_it_does_not_hold(length):
    """Truncation only ever shortens."""
    cache = KVCache()
    cache.write(0, *rows_of(0, 2, 0))
    cache.commit([0, 1])
    with pytest.raises(ValueError, match="cannot truncate"):
        cache.truncate(length)


def test_memory_grows_by_half_at_least():
    """Growth is geometric, so a long answer is copied a few times and not at every block."""
    cache, sizes = KVCache(), []
    for mark in range(2000):
        cache.write(0, *rows_of(mark, 1, 0))
        cache.commit([0])
        sizes.append(cache.nbytes)
    assert len(set(sizes)) <= 12
    assert sizes[-1] <= 1.6 * 2000 * HEADS * (KEY_DIM + VALUE_DIM) * 4


def test_a_given_dtype_is_what_is_stored():
    """A cache of another dtype than the model's converts on the way in."""
    cache = KVCache(dtype=torch.float64)
    keys, values = cache.write(0, *rows_of(0, 2, 0))
    assert keys.dtype == values.dtype == torch.float64


def test_a_seat_is_for_one_and_holds_nothing_but_that_ones_rows():
    """Behind the rows it is zero, whoever sat there before. One that is in use or too small is refused; a cleared,
    detached or forgotten cache leaves it, and so does one that outgrows it."""
    cache, seat = committed(3), seat_for(70)
    cache.move(seat)
    assert seat.user is cache
    for keys, values in seat.layers.values():
        assert not keys[:, 3:].any()
        assert not values[:, 3:].any()
    for other, wrong in ((committed(2), seat), (committed(2), seat_for(1))):
        with pytest.raises(ValueError, match="cannot have a seat"):
            other.move(wrong)
        assert_holds(other, [0, 1])
    cache.wrote(2)
    cache.commit([0, 1])
    assert cache.length == 5
    cache.truncate(3)
    for layer in range(LAYERS):
        cache.write(layer, *rows_of(3, 68, layer))
        assert (seat.user, cache.seat) == (None, None)
    cache.commit(range(68))
    assert_holds(cache, list(range(71)))
    for leave in (KVCache.clear, lambda cache: cache.detach(1, 2)):
        cache = committed(2)
        cache.move(seat)
        leave(cache)
        assert (seat.user, cache.seat, cache.length) == (None, None, 0)
    cache = committed(2)
    cache.move(seat)
    del cache
    assert seat.user is None

"""Replayed passes against those that are computed as they come. What is replayed here are recorded operations."""

from __future__ import annotations

import copy
import logging
from random import Random

import pytest
import torch
from fakes.models import CONFIGS, VOCAB, packed, tiny
from hypothesis import given
from hypothesis import strategies as st

from lookup_spec.model import graphs as graphs_module
from lookup_spec.model import graphs_check
from lookup_spec.model.cache import KVCache
from lookup_spec.model.forward import PackedModel, Rows
from lookup_spec.model.graphs import WIDEST, Graphs, arrangement, fitting
from lookup_spec.model.graphs_check import compare, graphs_of
from lookup_spec.model.seats import SPARE, Seats
from lookup_spec.model.static import Shape
from tests.model.recorded import Recorded, rerun

LOOK_AT_NUMBERS = ("gpt-2", "experts")  # unless they are captured, which the meta device cannot tell
CAPACITY, FEWEST = 128, 32


def seats_of(model: PackedModel, count: int, capacity: int = CAPACITY) -> Seats:
    cache = model.new_cache()
    model.forward([Rows(cache, [0], [-1], 0)])
    cache.commit([0])
    return Seats(cache.rows(0, 1), count, capacity)


def random_rows(random: Random, cache: KVCache, size: int, *, chunk: bool = False) -> Rows:
    parents = [-1, *(random.randrange(-1, row) for row in range(1, size))]
    if chunk or random.random() < 0.3:
        parents = list(range(-1, size - 1))
    return Rows(cache, [random.randrange(VOCAB) for _ in range(size)], parents, size if chunk else 0)


def random_path(random: Random, parents) -> list[int]:
    row, path = random.randrange(len(parents)), []
    while row >= 0:
        path.append(row)
        row = parents[row]
    return path[::-1]


def assert_alike(one: KVCache, other: KVCache) -> None:
    assert one.length == other.length
    for index, (keys, values) in other.rows(0, other.length).layers.items():
        mine = one.rows(0, one.length).layers[index]
        torch.testing.assert_close(mine[0], keys, atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(mine[1], values, atol=1e-4, rtol=1e-4)


def check_replays(name: str, steps: int) -> None:
    """Trees of changing sessions, more than there are seats, that commit, forget, copy, end and outgrow their seats:
    the logits and the committed rows are those of caches that are never seated."""
    random, model, capture = Random(len(name)), packed(name), Recorded()
    graphs = Graphs(model, seats_of(model, 4), capture, fewest=FEWEST)
    pairs = [(graphs.new_cache(), model.new_cache()) for _ in range(6)]
    for step in range(steps):
        picked = random.sample(pairs, random.choice((1, 1, 2, 3, 4, 5)))
        chunked = random.random() < 0.15
        batch = []
        for mine, _ in picked:
            room = 180 - mine.length
            size = min(random.choice((1, 1, 2, 5, 9, 30)), room) or 1
            batch.append(random_rows(random, mine, size, chunk=chunked and random.random() < 0.5))
        twins = [
            Rows(twin, rows.tokens, rows.parents, rows.keep) for rows, (_, twin) in zip(batch, picked, strict=True)
        ]
        for got, expected in zip(graphs.forward(batch), model.forward(twins), strict=True):
            torch.testing.assert_close(got, expected, atol=2e-4, rtol=1e-4)
        for rows, (mine, twin) in zip(batch, picked, strict=True):
            path = list(range(rows.keep)) or random_path(random, rows.parents)
            mine.commit(path)
            twin.commit(path)
            if mine.length > 170 or random.random() < 0.05:
                mine.clear()
                twin.clear()
            elif random.random() < 0.1:
                length = random.randint(0, mine.length)
                mine.truncate(length)
                twin.truncate(length)
        if step % 6 == 5:
            (mine, twin), (other, other_twin) = random.sample(pairs, 2)
            for cache, source in ((mine, other), (twin, other_twin)):
                cache.clear()
                cache.append(source.rows(0, source.length // 2))
        for mine, twin in picked:
            assert_alike(mine, twin)
        for mine, _ in pairs:
            assert mine.seat is None or mine.seat.user is mine
    assert capture.replayed >= steps // 3
    assert 4 <= capture.captured == graphs.captured < capture.replayed


@pytest.mark.parametrize("name", ["qwen2", "mistral, sliding window", "gemma 2, softcap", "gpt-2, learned positions"])
def test_replayed_passes_give_what_computed_ones_do(name):
    check_replays(name, 15)


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGS)
def test_many_replayed_passes_give_what_computed_ones_do(name):
    check_replays(name, 60)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["float16", "bfloat16"])
@pytest.mark.parametrize("name", [name for name in CONFIGS if not any(kind in name for kind in LOOK_AT_NUMBERS)])
def test_a_replayed_pass_stays_on_the_models_device(name, dtype):
    """On torch's meta device, which has no numbers for the host to look at, passes run and stay there."""
    model = PackedModel(copy.deepcopy(tiny(name)).to("meta", dtype))
    graphs = Graphs(model, seats_of(model, 2), rerun, fewest=FEWEST)
    caches = [graphs.new_cache(), graphs.new_cache()]
    logits = graphs.forward([Rows(caches[0], (1, 2, 3), (-1, 0, 0), 0), Rows(caches[1], (5,), (-1,), 0)])
    caches[0].commit((0, 2))
    assert [tuple(rows.shape) for rows in logits] == [(3, VOCAB), (1, VOCAB)]
    assert {rows.device.type for rows in logits} == {"meta"}
    assert {part.dtype for pair in graphs.seats.stores.values() for part in pair} == {dtype}
    assert all(cache.seat for cache in caches)


def rows_of(cache: KVCache, count: int, keep: int = 0) -> Rows:
    return Rows(cache, range(count), range(-1, count - 1), keep)


class Long:
    """A cache as far as its length goes."""

    def __init__(self, length: int) -> None:
        self.length = length


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([(0, 1)], Shape(1, 1, 1024)),
        ([(900, 100)], Shape(1, 128, 1536)),  # padding takes room, too
        ([(1000, 1)], Shape(1, 1, 1024)),
        ([(2000, 3)], Shape(1, 4, 2048)),
        ([(3999, 1)], Shape(1, 1, 4000)),  # as many columns as there are
        ([(4000, 1)], None),
        ([(10, 129)], None),
        ([(10, 3), (20, 1), (1600, 9)], Shape(4, 16, 2048)),
        ([(10, 1)] * 8, Shape(8, 1, 1024)),
        ([(10, 16)] * 8, Shape(8, 16, 1024)),
        ([(10, 16)] * 7 + [(10, 17)], None),  # 256 rows, padded
        ([(10, 1)] * 9, None),
        ([], None),
    ],
)
def test_sizes_decide_what_is_replayed(sizes, expected):
    batch = [rows_of(Long(length), count) for length, count in sizes]
    assert fitting(batch, 8, 4000) == expected


def test_prompt_chunks_are_computed_as_they_come():
    assert fitting([rows_of(Long(10), 1), rows_of(Long(10), 2, keep=1)], 8, 4000) is None


@given(st.integers(0, 10**6), st.integers(65, 200_000))
def test_seats_fit_into_their_memory(tokens, longest):
    """As many as fit, of a size that is of use; never more memory than given."""
    count, capacity = arrangement(tokens, longest)
    assert count in (0, 1, 2, 4, 8)
    assert count * (capacity + SPARE) <= tokens
    if count:
        assert capacity >= 2 * WIDEST
        assert capacity % 64 == 0
    if tokens >= 8 * (longest + 500):
        assert (count, capacity >= longest) == (8, True)
    if tokens >= 8192 + 64:
        assert capacity >= min(longest, 8192 - SPARE)


def test_the_first_graphs_are_those_of_one_session_with_a_short_text(caplog):
    """The widest first; the log says once how many there are and how long it took."""
    caplog.set_level(logging.INFO)
    model, shapes = packed("llama"), []
    graphs = Graphs(model, seats_of(model, 2), rerun, fewest=FEWEST)
    graphs._pass = lambda shape: shapes.append(shape) or (lambda: None)
    graphs.warm_up()
    assert shapes == [
        *(Shape(1, width, 32) for width in (32, 16, 8, 4, 2, 1)),
        *(Shape(1, width, 48) for width in (32, 16, 8, 4, 2, 1)),
    ]
    assert [record.getMessage()[:19] for record in caplog.records] == ["Captured 12 graphs "]


def test_capturing_ends_when_its_time_is_over(monkeypatch, caplog):
    """What is captured goes on being used; other passes are computed, and the log says so once."""
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(graphs_module, "_SECONDS", 0.0)
    model, capture = packed("llama"), Recorded()
    graphs = Graphs(model, seats_of(model, 2), capture, fewest=FEWEST)
    cache = graphs.new_cache()
    for count in (1, 2, 1, 4, 1):
        graphs.forward([rows_of(cache, count)])
        cache.commit([0])
    assert (capture.captured, capture.replayed) == (1, 3)
    assert len(caplog.records) == 1


def no_capture(run):  # noqa: ARG001 - it does not come to that
    raise RuntimeError("CUDA error: operation not permitted when stream is capturing\nCompile with this and that")


@pytest.mark.parametrize("good", [0, 2])
def test_passes_that_cannot_be_captured_are_computed(good, caplog):
    """One line of warning, no matter how many such passes come; those that could be captured are still replayed."""
    model, recorded = packed("qwen2"), Recorded()

    def capture(run):
        return recorded(run) if recorded.captured < good else no_capture(run)

    graphs = Graphs(model, seats_of(model, 2), capture, fewest=FEWEST)
    cache, twin, random = graphs.new_cache(), model.new_cache(), Random(3)
    for count in (1, 2, 4, 8, 1, 2, 16, 3):
        rows = random_rows(random, cache, count)
        [got] = graphs.forward([rows])
        [expected] = model.forward([Rows(twin, rows.tokens, rows.parents, 0)])
        torch.testing.assert_close(got, expected, atol=1e-4, rtol=1e-4)
        path = random_path(random, rows.parents)
        cache.commit(path)
        twin.commit(path)
    assert (recorded.captured, recorded.replayed) == (good, 2 * good)
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage().endswith("when stream is capturing")


@pytest.fixture
def capturing(monkeypatch):
    """Lets passes be captured on a CPU, by whatever is put in the list."""
    by = [Recorded()]
    monkeypatch.setattr(graphs_check, "capture_for", lambda _: by[0])
    return by


@pytest.mark.parametrize("name", ["llama", "gemma 2, softcap"])
def test_graphs_are_tried_before_they_are_used(name, capturing):
    model = packed(name)
    graphs = graphs_of(model, 1024, 192)
    assert graphs is not None
    assert graphs.seats.tokens <= 1024
    assert compare(model, graphs) > 0.9999
    assert capturing[0].replayed == 4


def test_models_that_cannot_be_captured_go_without_graphs(capturing, caplog):
    capturing[0] = no_capture
    assert graphs_of(packed("llama"), 1024, 192) is None
    assert len(caplog.records) == 1


def test_graphs_that_give_something_else_are_not_used(capturing, caplog):
    """Whether they do nothing, or always the same."""
    for wrong in (lambda _: lambda: None, lambda run: run() or (lambda: None)):
        caplog.clear()
        capturing[0] = wrong
        assert graphs_of(packed("llama"), 1024, 192) is None
        [record] = caplog.records
        assert "like what it should be" in record.getMessage()


def test_strict_models_and_small_memories_go_without_graphs(capturing):
    assert graphs_of(PackedModel(copy.deepcopy(tiny("llama")), strict=True), 1024, 192) is None
    assert graphs_of(packed("llama"), 200, 192) is None
    assert capturing[0].captured == 0


def test_nothing_is_captured_on_a_cpu():
    assert graphs_of(packed("llama"), 1024, 192) is None


def test_whoever_sits_longest_without_a_step_leaves_and_no_seat_is_given_twice():
    """A third session takes the seat of the one that was not asked for longest, whose rows are then in memory of its
    own; a cleared or forgotten cache leaves its seat empty."""
    model = packed("llama")
    seats = seats_of(model, 2)
    caches = [model.new_cache() for _ in range(3)]
    for number, cache in enumerate(caches):
        model.forward([rows_of(cache, 5 + number, 5 + number)])
        cache.commit(range(5 + number))
    first, second, third = caches
    kept = first.rows(0, 5).clone()
    assert seats.take([first], 1) == [0]
    assert (first.nbytes, first.capacity) == (0, 64)
    assert seats.take([second], 2) == [1]
    assert seats.take([third], 2) == [0]
    assert first.seat is None
    assert first.nbytes == 64 * model.token_bytes
    for index, (keys, values) in first.rows(0, 5).layers.items():
        assert torch.equal(keys, kept.layers[index][0])
        assert torch.equal(values, kept.layers[index][1])
    assert seats.take([second], 1) == [0]  # alone, it moves to the first
    assert third.seat is None
    second.clear()
    assert seats.take([third, first], 2) == [0, 1]
    del caches, third, cache
    assert seats.take([second, first], 2) == [0, 1]
    assert not seats.stores[0][0][0].any(), "nothing of the one before is left"

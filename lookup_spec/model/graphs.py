"""Passes over few rows as captured graphs: the host starts one replay, not hundreds of kernels one by one.

What is computed so, and what is not, depends on sizes alone, see :func:`fitting`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from lookup_spec.model.attention import ancestors
from lookup_spec.model.cache import BLOCK, KVCache
from lookup_spec.model.forward import PackedModel, Rows, depths_of
from lookup_spec.model.seats import SPARE, Seats
from lookup_spec.model.static import Shape, StaticPlan

WIDEST = 128
"""Most rows of a replayed pass, padding included: up to about here a GPU waits for weights, not for arithmetic."""

_SEATS = 8
_ROOMY = 8192  # tokens; seats are rather few than smaller
_COLUMNS = 1024  # the fewest that a graph looks at
_AT_START = 2  # so many numbers of columns
_START_SECONDS = 10.0  # after which no further graph is captured at the start
_SECONDS = 60.0  # and after which none is at all
_MOST = 192  # graphs

_log = logging.getLogger(__name__)


class Capture(Protocol):
    """Takes down what a function does with tensors."""

    def __call__(self, run: Callable[[], None]) -> Callable[[], None]:
        """Something that does the same again, on the same memory; ``run`` itself may be called before."""


class CudaCapture:
    """CUDA graphs that share their temporary memory: only one runs at a time, and none leaves anything there.

    Args:
        device: where they run.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device)
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, run: Callable[[], None]) -> Callable[[], None]:
        """See :class:`Capture`."""
        with torch.cuda.device(self._device):
            stream = torch.cuda.current_stream()
            try:
                # Libraries set themselves up at their first call, which cannot be captured.
                self._stream.wait_stream(stream)
                with torch.cuda.stream(self._stream):
                    run()
                stream.wait_stream(self._stream)
                graph = torch.cuda.CUDAGraph()
                # Other threads may use the device meanwhile.
                with torch.cuda.graph(graph, self._pool, self._stream, capture_error_mode="thread_local"):
                    run()
            finally:
                torch.cuda.set_stream(stream)  # a capture that fails does not always return to it
        replay: Callable[[], None] = graph.replay
        return replay


def capture_for(device: torch.device) -> Capture | None:
    """What captures on a device; None where nothing does."""
    return CudaCapture(device) if device.type == "cuda" else None


def fitting(batch: Sequence[Rows], seats: int, capacity: int, fewest: int = _COLUMNS) -> Shape | None:
    """The shape of the smallest replayed pass for some rows; None if they have to be computed as they come.

    Prompt chunks have to: they need no logits, and their sizes are many.

    Args:
        batch: the sessions' rows.
        seats: how many there are.
        capacity: tokens in each.
        fewest: columns.
    """
    sessions = _power(len(batch))
    width = _power(max((len(rows.tokens) for rows in batch), default=0))
    most = max((rows.cache.length for rows in batch), default=0) + width
    if not batch or sessions > seats or sessions * width > WIDEST or most > capacity:
        return None
    if any(rows.keep for rows in batch):
        return None
    return Shape(sessions, width, next(size for size in _columns(capacity, fewest) if size >= most))


class Graphs:
    """A model whose passes over few rows are replayed where they fit, and else computed as they come.

    A graph is captured when a pass of its shape comes for the first time, unless at the start, for as long as the time
    for capturing lasts. When one cannot be captured, none is tried again, and those that exist go on being used.

    Args:
        model: whose passes; not a strict one, whose rows must not depend on the shape of a pass.
        seats: where sessions sit while their passes are replayed.
        capture: takes down a pass.
        fewest: columns of the smallest graph; others have more by half, by two, by three and so on.

    Attributes:
        vocab_size: the model's.
        seats: as given.
        seconds: that capturing took.
    """

    def __init__(self, model: PackedModel, seats: Seats, capture: Capture, *, fewest: int = _COLUMNS) -> None:
        self.vocab_size = model.vocab_size
        self.seats = seats
        self.seconds = 0.0
        self._model = model
        self._capture = capture
        self._fewest = fewest
        self._numbers = torch.zeros(Shape(1, WIDEST, 0).numbers, dtype=torch.int32, device=model.device)
        self._logits = torch.empty((WIDEST, model.vocab_size), device=model.device)
        self._graphs: dict[Shape, Callable[[], None]] = {}
        self._done = False

    @property
    def captured(self) -> int:
        """How many graphs there are."""
        return len(self._graphs)

    def new_cache(self, capacity: int = 0) -> KVCache:
        """An empty cache for one session."""
        return self._model.new_cache(capacity)

    def warm_up(self) -> None:
        """Captures what one session alone needs while its text is short, the widest passes first; says in the log how
        long it took."""
        widths = [WIDEST >> n for n in range(WIDEST.bit_length())]
        for columns, width in product(_columns(self.seats.capacity, self._fewest)[:_AT_START], widths):
            if self.seconds < _START_SECONDS and width <= columns:
                self._graph(Shape(1, width, columns))
        if self.captured:
            _log.info("Captured %d graphs in %.1f s.", self.captured, self.seconds)

    def forward(self, batch: Sequence[Rows]) -> list[Tensor]:
        """As :meth:`lookup_spec.model.forward.PackedModel.forward`."""
        shape = fitting(batch, self.seats.count, self.seats.capacity, self._fewest)
        replay = None if shape is None else self._graph(shape)
        if shape is None or replay is None:
            return self._model.forward(batch)
        numbers = self.seats.take([rows.cache for rows in batch], shape.sessions)
        self._fill(shape, dict(zip(numbers, batch, strict=True)))
        replay()
        logits = self._logits[: shape.rows].unflatten(0, (shape.sessions, shape.width))
        for rows in batch:
            rows.cache.wrote(len(rows.tokens))
        # The next replay writes to the same place.
        return [logits[n, : len(rows.tokens)].clone() for n, rows in zip(numbers, batch, strict=True)]

    def _graph(self, shape: Shape) -> Callable[[], None] | None:
        if shape not in self._graphs and not self._done:
            self._add(shape)
        return self._graphs.get(shape)

    def _add(self, shape: Shape) -> None:
        started = time.perf_counter()
        self._fill(shape, {})
        try:
            self._graphs[shape] = self._capture(self._pass(shape))
        except Exception as error:
            self._done = True
            _log.warning("%s cannot be captured, so such passes are computed as they come: %s", shape, brief(error))
        self.seconds += time.perf_counter() - started
        if not self._done and (self.seconds >= _SECONDS or self.captured >= _MOST):
            self._done = True
            _log.info("No more graphs are captured after %d, which took %.1f s.", self.captured, self.seconds)

    def _pass(self, shape: Shape) -> Callable[[], None]:
        logits = self._logits[: shape.rows]

        def run() -> None:
            lengths, tokens, positions, seen = shape.parts(self._numbers)
            plan = StaticPlan(shape, self.seats.stores, lengths, positions, seen)
            logits.copy_(self._model.run(tokens.flatten().long(), positions.flatten().long(), 0, plan))

        return run

    def _fill(self, shape: Shape, sitting: Mapping[int, Rows]) -> None:
        """Tells the device about rows, by the number of the seat."""
        numbers = np.zeros(shape.numbers, np.int32)
        lengths, tokens, positions, seen = shape.parts(numbers)
        lengths[:] = self.seats.capacity  # what is computed for nobody goes behind everybody's rows
        seen[:] = np.eye(shape.width, dtype=np.int32)
        for number, rows in sitting.items():
            cached, count = rows.cache.length, len(rows.tokens)
            lengths[number] = cached
            tokens[number, :count] = rows.tokens
            positions[number] = cached
            positions[number, :count] += np.asarray(depths_of(rows.parents), np.int32)
            seen[number, :count, :count] = ancestors(rows.parents)
        given = torch.from_numpy(numbers)
        if self._numbers.device.type == "cuda":
            given = given.pin_memory()  # then the host need not wait, and this memory is not used again too early
        self._numbers[: shape.numbers].copy_(given, non_blocking=True)


def arrangement(tokens: int, longest: int) -> tuple[int, int]:
    """How many seats there are, and how many tokens each holds; none if not even a short text would fit.

    Args:
        tokens: memory for all of them.
        longest: most tokens of a session.
    """
    each = min(tokens, max(tokens // _SEATS, _ROOMY)) // BLOCK * BLOCK - SPARE
    capacity = min(each, -(-longest // BLOCK) * BLOCK + WIDEST)
    if capacity < 2 * WIDEST:
        return 0, 0
    fit = min(tokens // (capacity + SPARE), _SEATS)
    return 1 << fit.bit_length() - 1, capacity


def _columns(most: int, fewest: int) -> list[int]:
    """Numbers of columns, each at most half as much again as the one before."""
    sizes = []
    size = fewest
    while size < most:
        sizes += [size, size * 3 // 2]
        size *= 2
    return [*(size for size in sizes if size < most), most]


def _power(count: int) -> int:
    """The least power of two that is no less, and at least one."""
    return 1 << max(count - 1, 0).bit_length()


def brief(error: Exception) -> str:
    """The first line of what an error says, for those of CUDA go on with advice for others."""
    return next(iter(str(error).splitlines()), "") or type(error).__name__

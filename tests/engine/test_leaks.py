"""Nothing is left of requests that are over."""

from __future__ import annotations

import gc
import weakref
from random import Random

import pytest

from lookup_spec import SamplingParams
from lookup_spec.model.forward import PackedModel
from lookup_spec.pipeline.engine import Engine
from lookup_spec.propose.prompt import Prompt
from tests.server.tiny_service import tiny_model


def serve(engine: Engine, random: Random, count: int) -> list[weakref.ref[object]]:
    """Requests of a few tenants, some cancelled; what is left are weak references to their sessions."""
    seen: list[weakref.ref[object]] = []
    for _ in range(count):
        sessions = [
            engine.submit(
                Prompt(tuple(random.randrange(2, 200) for _ in range(random.randrange(1, 12)))),
                SamplingParams(max_tokens=2),
                tenant=random.choice("abc"),
            )
            for _ in range(10)
        ]
        sessions[0].cancel()
        while engine.step():
            pass
        seen += map(weakref.ref, sessions)
    return seen


def check(count: int) -> None:
    engine = Engine(tiny_model(), kv_cache_bytes=1 << 20, prefix_cache_bytes=1 << 17, segment_store_bytes=1 << 16)
    random = Random(1)
    serve(engine, random, 20)  # fills what is bounded
    gc.collect()
    before = len(gc.get_objects())
    seen = serve(engine, random, count)
    gc.collect()
    assert not any(session() for session in seen)
    # The references themselves are in the count; what is bounded breathes a little.
    assert len(gc.get_objects()) < before + len(seen) + 1500
    load = engine.load
    assert (load.running, load.waiting, load.running_tokens) == (0, 0, 0)
    assert load.kept_tokens <= (1 << 17) // PackedModel(tiny_model().model).token_bytes


def test_hundreds_of_requests_leave_nothing() -> None:
    check(30)


@pytest.mark.slow
def test_ten_thousand_requests_leave_nothing() -> None:
    check(1000)

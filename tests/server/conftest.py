"""One server for the tests that leave it as it was, and a slow one for those that do not wait."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from lookup_server.settings import Settings

from lookup_spec.engine.budget import CostCurve
from lookup_spec.model.load import LoadedModel
from lookup_spec.pipeline.engine import Engine
from tests.server.tiny_service import Running, SlowEngine, running, tiny_model


@pytest.fixture(scope="session", autouse=True)
def _known_machine() -> Iterator[None]:
    """Not every engine tries and measures the machine anew: that takes longer than most tests, and would let a busy
    machine decide what is drafted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lookup_spec.engine.setup.check_steady", lambda _: None)
        patch.setattr(CostCurve, "measure", lambda *_: CostCurve({1: 0.004, 16: 0.005, 64: 0.008}))
        yield


@pytest.fixture(scope="session")
def loaded() -> LoadedModel:
    return tiny_model()


@pytest.fixture(scope="session")
def engine(loaded: LoadedModel) -> Engine:
    return Engine(loaded)


@pytest.fixture(scope="session")
def service(engine: Engine) -> Iterator[Running]:
    settings = Settings(served_names=("tiny", "org/alias"), cors_origins=("https://ide.example",))
    with running(engine, settings) as one:
        yield one


@pytest.fixture(scope="session")
def client(service: Running) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.url, timeout=120, trust_env=False) as one:
        yield one


@pytest.fixture(scope="module")
def slow(loaded: LoadedModel) -> Iterator[Running]:
    settings = Settings(max_sessions=2, max_waiting=2, grace_seconds=0.5)
    with running(SlowEngine(loaded, max_sessions=2), settings) as one:
        yield one

"""One server for the tests that leave it as it was, and a slow one for those that do not wait."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from lookup_server.settings import Settings

from lookup_spec.model.load import LoadedModel
from lookup_spec.pipeline.engine import Engine
from tests.server.tiny_service import Running, SlowEngine, running, tiny_model


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
    with httpx.Client(base_url=service.url, timeout=20, trust_env=False) as one:
        yield one


@pytest.fixture(scope="module")
def slow(loaded: LoadedModel) -> Iterator[Running]:
    settings = Settings(max_sessions=2, max_waiting=2, grace_seconds=0.5)
    with running(SlowEngine(loaded, max_sessions=2), settings) as one:
        yield one

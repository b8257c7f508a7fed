"""Requests that schemathesis makes from the API's description: no 5xx, and no reply that the description lacks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from lookup_server.settings import Settings

from tests.server.test_described import Brief
from tests.server.tiny_service import FIM, running, tiny_model


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    engine = Brief(tiny_model(FIM), max_context_tokens=640)
    with running(engine, Settings(batch_folder=tmp_path_factory.mktemp("batches"))) as one:
        yield one.url


@pytest.mark.slow
def test_every_reply_to_what_the_description_allows_is_described(url: str) -> None:
    """And to what it does not allow: half of the requests break it on purpose."""
    schemathesis = pytest.importorskip("schemathesis")  # takes a second, which no quick run should
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks as of_openapi

    checks = [
        not_a_server_error,
        of_openapi.status_code_conformance,
        of_openapi.content_type_conformance,
        of_openapi.response_schema_conformance,
    ]
    operations = [found.ok() for found in schemathesis.openapi.from_url(f"{url}/openapi.json").get_all_operations()]
    asked: set[str] = set()
    for operation in operations:
        for mode in schemathesis.GenerationMode:

            @given(case=operation.as_strategy(generation_mode=mode))
            @settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
            def ask(case: Any) -> None:
                asked.add(case.operation.label)
                case.call_and_validate(checks=checks, timeout=120)

            with suppress(Unsatisfiable):  # a route without parameters cannot be asked wrongly
                ask()
    assert asked == {operation.label for operation in operations}

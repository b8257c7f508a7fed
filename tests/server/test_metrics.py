"""Figures for Prometheus, read by Prometheus's own parser."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from lookup_server.settings import Settings
from prometheus_client.parser import text_string_to_metric_families

from lookup_spec.model.load import LoadedModel
from lookup_spec.pipeline.engine import Engine
from tests.server.test_connections import LONG, send
from tests.server.tiny_service import Running, SlowEngine, running, until

PREFIX = "lookup_spec:"


def figures(client: httpx.Client, **labels: str) -> dict[str, float]:
    """All samples with these labels, by name without the prefix."""
    reply = client.get("/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=")
    return {
        sample.name.removeprefix(PREFIX): sample.value
        for family in text_string_to_metric_families(reply.raise_for_status().text)
        for sample in family.samples
        if labels.items() <= sample.labels.items() and family.documentation
    }


def test_counts_are_those_of_the_replies(loaded: LoadedModel) -> None:
    """Of answers that were streamed or not, drafted or not, and of what came to nothing."""
    body = {"prompt": "def add(a, b):\n" * 9, "max_tokens": 40, "temperature": 0, "ignore_eos": True}
    chat = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 5, "ignore_eos": True, "stream": True}
    with (
        running(Engine(loaded), Settings()) as service,
        httpx.Client(base_url=service.url, timeout=120, trust_env=False) as client,
    ):
        assert figures(client)["spec_decode_num_drafts_total"] == 0
        replies = [client.post("/v1/completions", json=body).json()["usage"] for _ in range(2)]
        client.post("/v1/completions", json={**body, "speculation": False})
        client.post("/v1/chat/completions", json=chat).raise_for_status()
        client.post("/v1/completions", json={"max_token": 5})
        client.get("/secret-looking-path")
        told = figures(client)
        assert told["generation_tokens_total"] == 40 * 3 + 5
        cached = sum(usage["prompt_tokens_details"]["cached_tokens"] for usage in replies)
        assert told["prefix_cache_hits_total"] > cached > 0
        assert told["prefix_cache_queries_total"] == told["prompt_tokens_total"] > 3 * replies[0]["prompt_tokens"]
        assert figures(client, finished_reason="length")["request_success_total"] == 4
        drafted, accepted = (told[f"spec_decode_num_{kind}_tokens_total"] for kind in ("draft", "accepted"))
        assert drafted >= accepted > 0
        assert told["forward_passes_total"] >= told["spec_decode_num_drafts_total"] > 0
        text = client.get("/metrics").text
        places = [
            figures(client, position=str(n)).get("spec_decode_num_accepted_tokens_per_pos_total") for n in range(64)
        ]
        counts = [count for count in places if count]
        assert counts == sorted(counts, reverse=True)
        assert sum(counts) == accepted
        assert figures(client, route="/v1/completions", status="400")["http_requests_total"] == 1
        assert figures(client, route="other", status="404")["http_requests_total"] == 1
        assert "secret" not in text
        assert told["time_to_first_token_seconds_count"] == 4
        assert told["inter_token_latency_seconds_count"] > 0
        assert (told["num_requests_running"], told["num_requests_waiting"]) == (0, 0)
        assert 0 < told["kv_cache_usage_perc"] < 1
        by_source = [
            sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == f"{PREFIX}spec_decode_source_accepted_tokens_total"
        ]
        assert sum(by_source) == accepted


def test_who_runs_and_who_waits_is_told_as_it_is(loaded: LoadedModel) -> None:
    with (
        running(SlowEngine(loaded, max_sessions=1), Settings(max_sessions=1)) as service,
        httpx.Client(base_url=service.url, timeout=120, trust_env=False) as client,
    ):
        with send(service, LONG), send(service, LONG):
            until(lambda: service.runner.load.waiting == 1)
            told = figures(client)
            assert (told["num_requests_running"], told["num_requests_waiting"]) == (1, 1)
        until(lambda: service.runner.active == 0)
        until(lambda: figures(client, finished_reason="cancelled by client").get("request_success_total") == 2)


@pytest.fixture(scope="module")
def guarded(loaded: LoadedModel) -> Iterator[Running]:
    with running(Engine(loaded), Settings(api_keys=("K",), metrics_key="M")) as one:
        yield one


@pytest.mark.parametrize(("key", "metrics", "others"), [("M", 200, 401), ("K", 401, 200), ("x", 401, 401)])
def test_a_key_of_their_own_opens_the_metrics_and_nothing_else(
    guarded: Running, key: str, metrics: int, others: int
) -> None:
    with httpx.Client(
        base_url=guarded.url, headers={"authorization": f"Bearer {key}"}, timeout=120, trust_env=False
    ) as client:
        assert client.get("/metrics").status_code == metrics
        assert client.get("/v1/models").status_code == others


def test_two_services_in_a_process_count_apart(loaded: LoadedModel, guarded: Running) -> None:
    with (
        running(Engine(loaded), Settings()) as other,
        httpx.Client(base_url=other.url, timeout=120, trust_env=False) as client,
    ):
        client.post("/v1/completions", json={"prompt": "def", "max_tokens": 2}).raise_for_status()
        assert figures(client)["prompt_tokens_total"] > 0
        headers = {"authorization": "Bearer M"}
        with httpx.Client(base_url=guarded.url, timeout=120, trust_env=False, headers=headers) as mine:
            assert figures(mine)["prompt_tokens_total"] == 0

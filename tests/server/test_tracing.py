"""Traces: which spans there are, how they hang together, and that they hold no text."""

from __future__ import annotations

import sys

import httpx
import pytest
from lookup_server.settings import Settings
from lookup_server.tracing import Untraced, tracing_to

from lookup_spec.errors import LookupSpecError
from lookup_spec.model.load import LoadedModel
from lookup_spec.pipeline.engine import Engine
from tests.server.tiny_service import running


def test_a_request_is_a_span_with_its_phases_inside(loaded: LoadedModel) -> None:
    """In the trace that the sender named; the phases follow each other without a gap, and no text is in them."""
    pytest.importorskip("opentelemetry.sdk")
    from lookup_server.spans import Spans
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    told, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(told))
    sender = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "x-request-id": "r1"}
    with (
        running(Engine(loaded), Settings(), tracing=Spans(provider)) as service,
        httpx.Client(base_url=service.url, timeout=120, trust_env=False, headers=sender) as client,
    ):
        body = {"prompt": "zebra quartz", "max_tokens": 4, "ignore_eos": True, "n": 2}
        text = client.post("/v1/completions", json=body).json()["choices"][0]["text"]
        assert client.post("/v1/completions", content=b"zebra").status_code == 400
    answered, refused = [span for span in told.get_finished_spans() if span.parent.span_id == 0xB7AD6B7169203331]
    assert all(span.context.trace_id == 0x0AF7651916CD43DD8448EB211C80319C for span in told.get_finished_spans())
    assert answered.name == refused.name == "POST /v1/completions"
    assert [span.attributes["http.response.status_code"] for span in (answered, refused)] == [200, 400]
    assert answered.attributes["lookup_spec.request_id"] == "r1"
    inside = [span for span in told.get_finished_spans() if span.parent.span_id == answered.context.span_id]
    assert [span.name for span in inside] == ["queue", "prefill", "decode"] * 2
    for queue, prefill, decode in (inside[:3], inside[3:]):
        assert queue.start_time <= queue.end_time == prefill.start_time <= prefill.end_time
        assert prefill.end_time == decode.start_time <= decode.end_time
        assert decode.attributes["gen_ai.usage.output_tokens"] == 4
        assert decode.attributes["gen_ai.response.finish_reasons"] == ("length",)
        assert prefill.attributes["gen_ai.usage.input_tokens"] > 2
    everything = " ".join(span.to_json() for span in told.get_finished_spans())
    assert "zebra" not in everything
    assert text not in everything


def test_without_an_address_nothing_is_traced() -> None:
    assert isinstance(tracing_to(None), Untraced)
    assert Settings().otlp_endpoint is None


def test_a_missing_package_is_one_clear_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("opentelemetry.exporter.otlp.proto.http.trace_exporter", "opentelemetry.sdk"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(LookupSpecError, match=r"pip install 'lookup-spec\[server,otel\]'"):
        tracing_to("http://localhost:4318/v1/traces")

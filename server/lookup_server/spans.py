"""OpenTelemetry's spans. Only imported where its packages are installed and traces are asked for."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TypeAlias

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from lookup_spec import __version__
from lookup_spec.stats import Stats

Attributes: TypeAlias = Mapping[str, "str | int | float | tuple[str, ...]"]


class Spans:
    """Makes spans; the form of :class:`lookup_server.tracing.Tracing`.

    Args:
        provider: knows where they go.
    """

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("lookup_server", __version__)

    def begin(self, headers: Mapping[str, str]) -> RequestSpans:
        """The spans of a request."""
        parent = TraceContextTextMapPropagator().extract(headers)
        return RequestSpans(self._tracer, self._tracer.start_span("request", parent, SpanKind.SERVER))

    def close(self) -> None:
        """Sends what is not sent yet."""
        self._provider.shutdown()


class RequestSpans:
    """The spans of one request; the form of :class:`lookup_server.tracing.Trace`.

    Args:
        tracer: makes them.
        span: that of the whole request.
    """

    def __init__(self, tracer: Tracer, span: Span) -> None:
        self._tracer = tracer
        self._span = span

    def answered(self, arrived: float, ended: float, stats: Stats, reason: str) -> None:
        """Three spans, one behind the other; the work's own clock says how long the last two took."""
        to_wall_clock = time.time() - time.monotonic()
        arrived, ended = arrived + to_wall_clock, ended + to_wall_clock
        begun = ended - stats.decode_seconds
        started = max(begun - stats.prefill_seconds, arrived)
        self._phase("queue", arrived, started, {})
        prompt: Attributes = {
            "gen_ai.usage.input_tokens": stats.prompt_tokens,
            "lookup_spec.cached_tokens": stats.cached_tokens,
        }
        self._phase("prefill", started, begun, prompt)
        answer: Attributes = {
            "gen_ai.usage.output_tokens": stats.completion_tokens,
            "gen_ai.response.finish_reasons": (reason,),
            "lookup_spec.forward_passes": stats.forward_passes,
            "lookup_spec.drafted_tokens": stats.drafted,
            "lookup_spec.accepted_tokens": stats.accepted,
        }
        self._phase("decode", begun, ended, answer)

    def end(self, name: str, status: int, about: Mapping[str, str | int | float]) -> None:
        """The request's own span ends."""
        self._span.update_name(name)
        self._span.set_attributes({"http.response.status_code": status, **about})
        if status >= 500:
            self._span.set_status(StatusCode.ERROR)
        self._span.end()

    def _phase(self, name: str, start: float, end: float, attributes: Attributes) -> None:
        parent = set_span_in_context(self._span)
        span = self._tracer.start_span(name, parent, attributes=dict(attributes), start_time=_nanoseconds(start))
        span.end(_nanoseconds(end))


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1e9)

"""Traces for OpenTelemetry: a span for each request, in it one each for waiting, prompt and answer. Never a text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from lookup_spec import __version__
from lookup_spec.errors import LookupSpecError
from lookup_spec.stats import Stats


class Trace(Protocol):
    """What is told of one request. Times are of the monotonic clock, in seconds."""

    def answered(self, arrived: float, ended: float, stats: Stats, reason: str) -> None:
        """One of its answers is over."""

    def end(self, name: str, status: int, about: Mapping[str, str | int | float]) -> None:
        """The request is over; ``name`` is its method and route."""


class Tracing(Protocol):
    """Where traces go."""

    def begin(self, headers: Mapping[str, str]) -> Trace:
        """A request came; its headers may say which trace of its sender it belongs to."""

    def close(self) -> None:
        """Sends what is not sent yet."""


class Untraced:
    """No traces at all."""

    def begin(self, headers: Mapping[str, str]) -> Trace:  # noqa: ARG002 - there is nothing to do
        """The same for all."""
        return self

    def answered(self, arrived: float, ended: float, stats: Stats, reason: str) -> None:
        """Nothing."""

    def end(self, name: str, status: int, about: Mapping[str, str | int | float]) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


def tracing_to(endpoint: str | None) -> Tracing:
    """Traces that go to a collector, over HTTP.

    Args:
        endpoint: the collector's address for traces; None for no traces.

    Raises:
        LookupSpecError: a package for it is missing.
    """
    if endpoint is None:
        return Untraced()
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 - optional
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

        from lookup_server.spans import Spans  # noqa: PLC0415
    except ModuleNotFoundError as error:
        message = f"Traces need the package {error.name}; install it with: pip install 'lookup-spec[server,otel]'"
        raise LookupSpecError(message) from error
    provider = TracerProvider(resource=Resource.create({"service.name": "lookup-spec", "service.version": __version__}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint)))
    return Spans(provider)

"""Figures for Prometheus. Where vLLM has the same figure, it has the same name but for the prefix."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from lookup_spec import __version__
from lookup_spec.pipeline.engine import Engine
from lookup_spec.stats import Load, Stats

CONTENT_TYPE = CONTENT_TYPE_LATEST

_PREFIX = "lookup_spec:"
_WAITS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160)
_GAPS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)
_LENGTHS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640)


class Metrics:
    """All figures of one service, in a registry of their own. Counts of an answer are added when it ends.

    Args:
        engine: whose they are.
        load: tells what the engine is busy with.
        waiting: tells how many answers have a place but do not run yet.
    """

    def __init__(self, engine: Engine, load: Callable[[], Load], waiting: Callable[[], int]) -> None:
        self._registry = CollectorRegistry()
        self._http = self._counter("http_requests", "HTTP requests by route and status.", "method", "route", "status")
        self._http_seconds = self._histogram(
            "http_request_duration_seconds", "From a request's arrival to its last byte.", _LENGTHS, "route"
        )
        self._ended = self._counter("request_success", "Answers by how they ended.", "finished_reason")
        self._first = self._histogram(
            "time_to_first_token_seconds", "From a request's arrival to its first text.", _WAITS
        )
        self._gaps = self._histogram(
            "inter_token_latency_seconds", "Between two deliveries of text, divided by the tokens delivered.", _GAPS
        )
        self._prompt = self._counter("prompt_tokens", "Tokens of prompts.")
        self._generated = self._counter("generation_tokens", "Tokens of answers.")
        self._asked = self._counter("prefix_cache_queries", "Tokens of prompts that might have been there already.")
        self._hits = self._counter("prefix_cache_hits", "Those of them that were, and were not computed again.")
        self._passes = self._counter("forward_passes", "Forward passes that chose tokens, counted for each answer.")
        self._drafts = self._counter("spec_decode_num_drafts", "Those of them that checked drafted tokens.")
        self._drafted = self._counter("spec_decode_num_draft_tokens", "Drafted tokens that were checked.")
        self._accepted = self._counter("spec_decode_num_accepted_tokens", "Drafted tokens that were right.")
        self._accepted_at = self._counter(
            "spec_decode_num_accepted_tokens_per_pos", "The same by their place on the accepted path.", "position"
        )
        self._source_drafted = self._counter(
            "spec_decode_source_draft_tokens", "Drafted tokens by what proposed them.", "source"
        )
        self._source_accepted = self._counter(
            "spec_decode_source_accepted_tokens", "Drafted tokens that were right by what proposed them.", "source"
        )
        self._registry.register(_Now(engine, load, waiting))

    def text(self) -> bytes:
        """All figures in Prometheus's text form."""
        return generate_latest(self._registry)

    def call_ended(self, method: str, route: str, status: int, seconds: float) -> None:
        """An HTTP request is over."""
        self._http.labels(method, route, str(status)).inc()
        self._http_seconds.labels(route).observe(seconds)

    def began(self, seconds: float) -> None:
        """An answer's first text came, so long after the request."""
        self._first.observe(seconds)

    def went_on(self, seconds: float, tokens: int) -> None:
        """So many tokens more came, so long after those before."""
        self._gaps.observe(seconds / max(tokens, 1))

    def ended(self, stats: Stats, reason: str) -> None:
        """An answer is over, for whatever reason."""
        self._ended.labels(reason).inc()
        self._prompt.inc(stats.prompt_tokens)
        self._asked.inc(stats.prompt_tokens)
        self._hits.inc(stats.cached_tokens)
        self._generated.inc(stats.completion_tokens)
        self._passes.inc(stats.forward_passes)
        self._drafts.inc(stats.drafts)
        self._drafted.inc(stats.drafted)
        self._accepted.inc(stats.accepted)
        for position, count in enumerate(stats.accepted_at):
            self._accepted_at.labels(str(position)).inc(count)
        for source, counts in stats.sources.items():
            self._source_drafted.labels(source).inc(counts.drafted)
            self._source_accepted.labels(source).inc(counts.accepted)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(_PREFIX + name, text, labels, registry=self._registry)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(_PREFIX + name, text, labels, buckets=buckets, registry=self._registry)


class _Now(Collector):
    """What holds at the moment somebody asks."""

    def __init__(self, engine: Engine, load: Callable[[], Load], waiting: Callable[[], int]) -> None:
        self._engine = engine
        self._load = load
        self._waiting = waiting

    def collect(self) -> Iterator[Metric]:
        """The figures."""
        load = self._load()
        used = load.running_tokens + load.kept_tokens
        gauges: dict[str, tuple[str, float]] = {
            "num_requests_running": ("Answers that take part in forward passes.", load.running),
            "num_requests_waiting": ("Answers that have a place but do not run yet.", self._waiting()),
            "kv_cache_usage_perc": (
                "Memory for keys and values in use; 1 is all.",
                used / self._engine.room_tokens,
            ),
            "kv_cache_kept_tokens": ("Tokens whose keys and values are kept of ended answers.", load.kept_tokens),
        }
        for name, (text, value) in gauges.items():
            yield GaugeMetricFamily(_PREFIX + name, text, value)
        preempted = "How often a running answer had to wait again."
        yield CounterMetricFamily(f"{_PREFIX}num_preemptions", preempted, load.preempted)
        info = GaugeMetricFamily(f"{_PREFIX}build_info", "What runs.", labels=("version", "model"))
        info.add_metric((__version__, self._engine.model_name), 1)
        yield info

"""``lookup-spec serve``: the service."""

from __future__ import annotations

import os
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lookup_spec.cli import options
from lookup_spec.errors import LookupSpecError

if TYPE_CHECKING:
    from lookup_server.settings import Settings

    from lookup_spec.model.load import LoadedModel
    from lookup_spec.pipeline.engine import Engine

_ON_THIS_MACHINE = ("127.0.0.1", "::1", "localhost")


def _option(panel: str, text: str, *names: str, **more: Any) -> Any:
    # What is not given here may be given elsewhere, so no flag has a default of its own.
    return typer.Option(*names, help=text, rich_help_panel=panel, show_default=False, **more)


_MODEL, _CLIENTS, _LIMITS, _STREAMS, _RUNNING = "Model", "Clients", "Limits", "Streams", "Running it"


def serve(
    config: Annotated[
        Path | None,
        _option("Settings", "A TOML file with any of these settings, such as max_waiting = 64.", metavar="FILE"),
    ] = None,
    model: Annotated[str | None, options.MODEL.option(options.MODEL_DEFAULT, panel=_MODEL)] = None,
    dtype: Annotated[str | None, options.DTYPE.option("auto", panel=_MODEL)] = None,
    device: Annotated[str | None, options.DEVICE.option("auto", panel=_MODEL)] = None,
    strict: Annotated[bool | None, options.STRICT.option(options.STRICT_DEFAULT, panel=_MODEL)] = None,
    enforce_eager: Annotated[bool | None, options.ENFORCE_EAGER.option("no", panel=_MODEL)] = None,
    kv_cache_mb: Annotated[
        float | None,
        _option(
            _MODEL,
            "Most memory for keys and values, in megabytes.  [default: half of what is free, of a GPU's 80 %]",
        ),
    ] = None,
    prefix_cache_mb: Annotated[
        float | None,
        _option(
            _MODEL,
            "As much of that may be kept of ended answers, so that a prompt that begins like an earlier one is "
            "answered sooner; 0 keeps nothing.  [default: a quarter, at most 2 GB unless on a GPU]",
        ),
    ] = None,
    calibration: Annotated[
        str | None,
        _option(
            _MODEL,
            "Where to keep, from run to run, how often guesses came true (counts only, no text); 'off' keeps "
            "nothing.  [default: in the user's cache directory]",
            metavar="DIR",
        ),
    ] = None,
    host: Annotated[
        str | None,
        _option(
            _CLIENTS,
            "Address to listen on; 0.0.0.0 lets other machines in, then set a key too.  [default: 127.0.0.1]",
        ),
    ] = None,
    port: Annotated[
        int | None, _option(_CLIENTS, "Port to listen on; 0 takes a free one.  [default: 8012]", "--port", "-p")
    ] = None,
    api_key: Annotated[
        list[str] | None,
        _option(
            _CLIENTS,
            "Clients must send this key, or another one that was given. The environment keeps keys off the process "
            "list.  [default: no key]",
        ),
    ] = None,
    metrics_key: Annotated[
        str | None,
        _option(
            _CLIENTS,
            "Opens /metrics and nothing else; without it any API key opens them, and shows its owner how busy the "
            "others are.",
        ),
    ] = None,
    served_model_name: Annotated[
        list[str] | None,
        _option(
            _CLIENTS,
            "What clients call the model, and how it samples under that name for those that do not say, such as "
            "'edits,temperature=0,max_tokens=4096'; may be given several times.  [default: the model's own name]",
        ),
    ] = None,
    temperature: Annotated[
        float | None,
        _option(
            _CLIENTS,
            "For requests that name none: 1 is OpenAI's default, 0 is best for edits.  [default: 1]",
        ),
    ] = None,
    strict_openai: Annotated[
        bool | None,
        _option(
            _CLIENTS,
            "The OpenAI routes refuse what OpenAI's API refuses, such as top_k.",
            "--strict-openai/--no-strict-openai",
        ),
    ] = None,
    cors_origin: Annotated[
        list[str] | None,
        _option(_CLIENTS, "Web pages of this origin may call the service, '*' for all; may be given several times."),
    ] = None,
    max_sessions: Annotated[int | None, _option(_LIMITS, "Answers generated at the same time.  [default: 32]")] = None,
    max_waiting: Annotated[
        int | None,
        _option(_LIMITS, "Answers that may wait their turn; beyond that clients get status 429.  [default: 128]"),
    ] = None,
    max_body_mb: Annotated[float | None, _option(_LIMITS, "Largest request body, in megabytes.  [default: 8]")] = None,
    arriving_mb: Annotated[
        float | None,
        _option(
            _LIMITS,
            "Memory for all bodies that are arriving, in megabytes; beyond that clients get status 429.  "
            "[default: 8 times the largest body's]",
        ),
    ] = None,
    max_context_tokens: Annotated[
        int | None,
        _option(_LIMITS, "Most tokens of a prompt and its answer together.  [default: as many as the model holds]"),
    ] = None,
    body_seconds: Annotated[
        float | None,
        _option(_LIMITS, "Longest time a request's head may take to arrive, and then its body.  [default: 30]"),
    ] = None,
    request_seconds: Annotated[
        float | None,
        _option(_LIMITS, "Longest time from a request's arrival to the end of its answer.  [default: no limit]"),
    ] = None,
    send_seconds: Annotated[
        float | None, _option(_LIMITS, "A client that takes nothing for so long counts as gone.  [default: 60]")
    ] = None,
    document_mb: Annotated[
        float | None,
        _option(
            _LIMITS,
            "Memory for each key's documents, so that an edit can name one by its hash, in megabytes.  [default: 64]",
        ),
    ] = None,
    heartbeat_seconds: Annotated[
        float | None,
        _option(_STREAMS, "A stream with nothing to say sends a comment this often, for proxies.  [default: 15]"),
    ] = None,
    smooth_stream_ms: Annotated[
        float | None,
        _option(
            _STREAMS,
            "Every stream sends 2 kB this often, filled up with comments, so that whoever sees encrypted packets "
            "cannot tell from their sizes and times how much was accepted; 50 is a good value. How long the whole "
            "answer takes stays visible.  [default: 0, off]",
        ),
    ] = None,
    batch_dir: Annotated[
        Path | None,
        _option(
            _RUNNING,
            "Offer files and batches, and keep them here: they outlast the service.  [default: neither]",
            metavar="DIR",
        ),
    ] = None,
    max_file_mb: Annotated[float | None, _option(_LIMITS, "Largest file, in megabytes.  [default: 210]")] = None,
    grace_seconds: Annotated[
        float | None,
        _option(_RUNNING, "At shutdown, how long running answers may take to complete.  [default: 10]"),
    ] = None,
    otlp_endpoint: Annotated[
        str | None,
        _option(
            _RUNNING,
            "Send a trace of each request to this address of an OpenTelemetry collector, such as "
            "http://localhost:4318/v1/traces; never a text.  [default: none are made]",
            metavar="URL",
        ),
    ] = None,
    log_format: Annotated[
        str | None,
        _option(_RUNNING, "text or json; neither ever holds a prompt's or an answer's text.  [default: text]"),
    ] = None,
    log_level: Annotated[str | None, _option(_RUNNING, "debug, info, warning or error.  [default: info]")] = None,
    open_page: Annotated[
        bool, _option(_RUNNING, "Open the playground in a browser when the model is ready.", "--open")
    ] = False,
) -> None:
    """Serves a model to editors and any OpenAI client, with a page to try it.

    Point a client at http://127.0.0.1:8012/v1, or open http://127.0.0.1:8012/ in a browser. Ctrl-C ends it.

    A setting may also be given in the environment, --max-waiting as LOOKUP_SPEC_MAX_WAITING, or in a file, as
    max_waiting. A flag counts more than the environment, and that more than the file.
    """
    given = {name: value for name, value in locals().items() if name not in ("config", "open_page")}
    try:
        from lookup_server import main
        from lookup_server.configuration import load_settings
        from lookup_server.logs import set_up_logs
    except ModuleNotFoundError as error:
        raise LookupSpecError(
            f"The service needs the package {error.name}; install it with: pip install 'lookup-spec[server]'"
        ) from error
    settings = load_settings(given, os.environ, config)
    set_up_logs(settings.log_format, settings.log_level)
    with main.bind(settings.host, settings.port) as sock:
        from lookup_server.loading import engine_of, load  # torch comes with it, so only now

        loaded = load(settings, lambda text: typer.echo(text, err=True))
        engine = engine_of(loaded, settings, options.calibration_directory(settings.calibration))
        kind = str(loaded.dtype).removeprefix("torch.")
        url = main.url_of(sock)
        _warn(engine, loaded, settings)

        def ready() -> None:
            typer.echo(f"{loaded.name} in {kind} on {loaded.device}; playground: {url} (API: {url}v1)", err=True)
            if open_page:
                webbrowser.open(url)

        try:
            main.run(engine, settings, sock, ready)
        finally:
            engine.close()


def _warn(engine: Engine, loaded: LoadedModel, settings: Settings) -> None:
    warnings = []
    if settings.host not in _ON_THIS_MACHINE and not settings.api_keys:
        warnings.append("anyone who reaches this address may use the model; set a key with --api-key.")
    if engine.context_length < min(loaded.context_length, settings.max_context_tokens or loaded.context_length):
        warnings.append(
            f"there is memory for {engine.context_length} tokens only, though the model holds "
            f"{loaded.context_length}; raise --kv-cache-mb if you can."
        )
    if engine.template.problem is not None:
        warnings.append(engine.template.problem)
    for warning in warnings:
        typer.echo(f"Warning: {warning}", err=True)

"""``lookup-spec serve``: the OpenAI-compatible service."""

from __future__ import annotations

import logging
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lookup_spec.cli import options
from lookup_spec.errors import LookupSpecError

if TYPE_CHECKING:
    from lookup_spec.model.load import LoadedModel

_ON_THIS_MACHINE = ("127.0.0.1", "::1", "localhost")


def serve(
    model: options.Model = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 lets other machines in, then set a key too.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", "-p", min=0, max=65535, help="Port to listen on; 0 takes a free one.")
    ] = 8012,
    api_key: Annotated[
        list[str] | None,
        typer.Option(
            envvar="LOOKUP_SPEC_API_KEY",
            help="Clients must send this key; may be given several times. The environment variable keeps it off "
            "the process list.  [default: no key]",
            show_default=False,
        ),
    ] = None,
    served_model_name: Annotated[
        list[str] | None,
        typer.Option(
            help="What clients call the model; may be given several times.  [default: the model's own name]",
            show_default=False,
        ),
    ] = None,
    cors_origin: Annotated[
        list[str] | None,
        typer.Option(help="Web pages of this origin may call the service; may be given several times."),
    ] = None,
    temperature: Annotated[
        float,
        typer.Option(min=0.0, help="For requests that name none: 1 is OpenAI's default, 0 is best for edits."),
    ] = 1.0,
    max_sessions: Annotated[int, typer.Option(min=1, help="Answers generated at the same time.")] = 32,
    max_waiting: Annotated[
        int, typer.Option(min=0, help="Answers that may wait their turn; beyond that clients get status 429.")
    ] = 128,
    kv_cache_mb: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Most memory for keys and values, in megabytes.  [default: half of what is free, of a GPU's 80 %]",
            show_default=False,
        ),
    ] = None,
    prefix_cache_mb: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="As much of that may be kept of ended answers, so that a prompt that begins like an earlier one is "
            "answered sooner; 0 keeps nothing.  [default: a quarter, at most 2 GB unless on a GPU]",
            show_default=False,
        ),
    ] = None,
    max_body_mb: Annotated[float, typer.Option(min=0.001, help="Largest request body, in megabytes.")] = 8.0,
    batch_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Offer files and batches, and keep them here: they outlast the service.  [default: neither]",
            show_default=False,
        ),
    ] = None,
    grace: Annotated[
        float, typer.Option(min=0.0, help="Seconds that running answers may take to complete at shutdown.")
    ] = 10.0,
    open_page: Annotated[
        bool, typer.Option("--open", help="Open the playground in a browser when the model is ready.")
    ] = False,
    dtype: options.DType = "auto",
    device: options.Device = "auto",
    calibration: options.Calibration = None,
    strict: options.Strict = False,
) -> None:
    """Serves a model to editors and any OpenAI client, with a page to try it.

    Point a client at http://127.0.0.1:8012/v1, or open http://127.0.0.1:8012/ in a browser. Ctrl-C ends it.
    """
    try:
        from lookup_server import main
        from lookup_server.settings import Settings
    except ModuleNotFoundError as error:
        raise LookupSpecError(
            f"The service needs the package {error.name}; install it with: pip install 'lookup-spec[server]'"
        ) from error
    settings = Settings(
        host=host,
        port=port,
        served_names=tuple(served_model_name or ()),
        api_keys=tuple(api_key or ()),
        cors_origins=tuple(cors_origin or ()),
        temperature=temperature,
        max_sessions=max_sessions,
        max_waiting=max_waiting,
        batch_folder=batch_dir,
        max_body_bytes=int(max_body_mb * 1_000_000),
        grace_seconds=grace,
    )
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    logging.getLogger("lookup_server").setLevel(logging.INFO)
    with main.bind(host, port) as sock:
        loaded = _load(model, dtype, device)
        from lookup_spec.pipeline.engine import Engine

        engine = Engine(
            loaded,
            max_sessions=max_sessions,
            max_waiting=max_waiting + max_sessions,  # batches have places of their own, and take no others
            kv_cache_bytes=_bytes(kv_cache_mb),
            prefix_cache_bytes=_bytes(prefix_cache_mb),
            calibration=options.calibration_directory(calibration),
            strict=strict,
        )
        kind = str(loaded.dtype).removeprefix("torch.")
        url = main.url_of(sock)
        if host not in _ON_THIS_MACHINE and not settings.api_keys:
            typer.echo(
                "Warning: anyone who reaches this address may use the model; set a key with --api-key.",
                err=True,
            )
        if engine.context_length < loaded.context_length:
            typer.echo(
                f"Warning: there is memory for {engine.context_length} tokens only, though the model holds "
                f"{loaded.context_length}; raise --kv-cache-mb if you can.",
                err=True,
            )
        if engine.template.problem is not None:
            typer.echo(f"Warning: {engine.template.problem}", err=True)

        def ready() -> None:
            typer.echo(f"{loaded.name} in {kind} on {loaded.device}; playground: {url} (API: {url}v1)", err=True)
            if open_page:
                webbrowser.open(url)

        try:
            main.run(engine, settings, sock, ready)
        finally:
            engine.close()


def _bytes(megabytes: float | None) -> int | None:
    return None if megabytes is None else int(megabytes * 1_000_000)


def _load(model: str | None, dtype: str, device: str) -> LoadedModel:
    from lookup_spec.model.load import load_model

    return load_model(model, dtype=dtype, device=device, progress=lambda text: typer.echo(text, err=True))

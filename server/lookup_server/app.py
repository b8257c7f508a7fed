"""The application: routes, middleware, and errors in one shape."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lookup_server.access import KeyCheck
from lookup_server.batches.service import Batches
from lookup_server.calls import Calls
from lookup_server.edits.documents import Documents
from lookup_server.edits.running import RunningEdits
from lookup_server.errors import ApiError, bad_request, from_exception
from lookup_server.intake import Intake
from lookup_server.routes import (
    answers,
    editors,
    edits,
    files_and_batches,
    health,
    llamacpp,
    metrics,
    models,
    playground,
)
from lookup_server.routes.documented import without_the_frameworks_own
from lookup_server.routes.state import State
from lookup_server.runner import Runner
from lookup_server.settings import Settings
from lookup_server.tracing import Tracing, tracing_to
from lookup_server.wire import error_response
from lookup_spec import __version__
from lookup_spec.errors import LookupSpecError
from lookup_spec.pipeline.engine import Engine

_log = logging.getLogger(__name__)
_ROUTES = (
    "this server has /v1/edits, /v1/chat/completions, /v1/completions, /v1/batches, /infill, /v1/models and /health."
)


def create_app(engine: Engine, settings: Settings, tracing: Tracing | None = None) -> FastAPI:
    """The service around an engine. Its lifespan starts and stops the engine's thread.

    Args:
        engine: nobody else may step it while the service runs.
        settings: the operator's.
        tracing: where traces go; None takes what the settings say.

    Raises:
        LookupSpecError: the folder for batches, or a package for traces, cannot be had.
    """
    tracing = tracing or tracing_to(settings.otlp_endpoint)
    seats = settings.max_sessions + settings.max_waiting
    runner = Runner(engine, seats=seats, request_seconds=settings.request_seconds)

    folder = settings.batch_folder
    batches = None if folder is None else Batches.open(folder, runner, settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        runner.start()
        if batches is not None:
            batches.worker.start()
        try:
            yield
        finally:
            if batches is not None:
                await batches.close()
            await asyncio.to_thread(runner.stop)
            await asyncio.to_thread(tracing.close)

    app = FastAPI(title="lookup-spec", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.service = State(
        settings, runner, Intake(settings), Documents(settings.document_bytes), RunningEdits(), batches
    )
    app.include_router(health.router)
    app.include_router(metrics.router)
    app.include_router(playground.router)
    app.include_router(llamacpp.router)
    for router in (models.router, answers.router, edits.router, editors.router, files_and_batches.router):
        app.include_router(router, prefix="/v1")
        app.include_router(router, include_in_schema=False)  # some clients leave the version out
    without_the_frameworks_own(app)
    app.add_exception_handler(HTTPException, _no_route)
    app.add_exception_handler(RequestValidationError, _wrong_parameter)
    app.add_exception_handler(ApiError, _error)
    app.add_exception_handler(LookupSpecError, _error)
    # The last added is the outermost. Cross-origin headers go on errors too, and preflights carry no key.
    app.add_middleware(Unexpected)
    app.add_middleware(KeyCheck, keys=settings.api_keys, metrics_key=settings.metrics_key)
    app.add_middleware(
        CORSMiddleware,
        allow_origins=settings.cors_origins,
        allow_methods=["*"],
        allow_headers=["*"],
        expose_headers=["x-request-id", "retry-after"],
    )
    app.add_middleware(Calls, ended=runner.metrics.call_ended, tracing=tracing)
    app.add_middleware(TrailingSlash)
    return app


class TrailingSlash:
    """Reads ``/v1/models/`` as ``/v1/models``: users type either into their clients."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].endswith("/"):
            scope = {**scope, "path": scope["path"].rstrip("/") or "/"}
        await self._app(scope, receive, send)


class Unexpected:
    """Answers what no handler knows, inside the other middleware rather than around it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception as error:
            if started:
                raise
            await error_response(from_exception(error))(scope, receive, send)


async def _error(_: Request, error: Exception) -> Response:
    return error_response(from_exception(error))


async def _wrong_parameter(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    name = str(first["loc"][-1])
    return error_response(bad_request(f"The parameter {name} is wrong: {first['msg']}.", name))


async def _no_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    place = f"{request.method} {request.url.path}"
    messages = {404: f"There is no {place}; {_ROUTES}", 405: f"There is no {place}; it wants another method."}
    message = messages.get(error.status_code, str(error.detail))
    return error_response(ApiError(error.status_code, message, code="not_found", headers=error.headers))

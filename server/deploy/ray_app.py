"""The service on many machines, as a Ray Serve application.

    pip install 'lookup-spec[ray]'
    serve run --app-dir server/deploy ray_app:build model=Qwen/Qwen2.5-Coder-7B-Instruct most_replicas=8 gpus=1

Arguments are those of :class:`Scale` and the service's settings, by the names that its TOML file has; LOOKUP_SPEC_* in
the environment counts, too.

There are two deployments. ``Replica`` is the whole service around a model of its own. ``Door`` takes requests and
passes each to the replica that has seen its document: what replicas keep (computed prefixes, indexed texts, documents
known by their hash) pays only where the next request about the same text comes to the same replica. Which one that is
follows from a hash of the caller's key and the document, by Ray's consistent-hash router: all doors agree without
asking each other, and when replicas come or go, few documents move. A replica that is full passes on to the next.
"""

import asyncio
import hashlib
import logging
import os
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any
from uuid import uuid4

from fastapi import FastAPI, Request, Response
from lookup_server.app import create_app
from lookup_server.configuration import load_settings
from lookup_server.errors import ApiError
from lookup_server.intake import Intake
from lookup_server.loading import engine_of, load
from lookup_server.logs import set_up_logs
from lookup_server.routes.edits import CHOSEN_ID
from lookup_server.settings import Settings
from lookup_server.wire import error_response
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import from_json
from ray import serve
from ray.serve.config import AutoscalingConfig, RequestRouterConfig
from ray.serve.handle import DeploymentHandle
from starlette.types import Message, Receive, Scope, Send

from lookup_spec.cli.options import calibration_directory

_log = logging.getLogger("lookup_server.ray")

_ROUTER = "ray.serve.experimental.consistent_hash_router:ConsistentHashRouter"
_SESSION = "x-session-id"  # Ray's own name for it; a client that knows better may send one
_EDIT = re.compile(r"(?:/v1)?/edits/edit-([0-9a-f]{16})-[0-9a-f]{32}")
_BEGINNING = 4096  # most letters of a prompt by which it is told from others
_MEASURED = 10.0  # seconds from one look at the load to the next, at most
_NO_LENGTH = frozenset({b"content-length", b"transfer-encoding"})  # the front's server knows better

door = FastAPI(openapi_url=None)


class Scale(BaseModel):
    """How large the application may grow.

    Attributes:
        replicas: as many run at least.
        most_replicas: and at most, as load demands; None for no more than the least.
        doors: as many take requests.
        cpus: of each replica.
        gpus: likewise.
        busy: answers under way, for each replica, at which one more is started.
        patience: seconds that they have to be so many.
    """

    model_config = ConfigDict(extra="forbid")

    replicas: int = Field(1, ge=1)
    most_replicas: int | None = Field(None, ge=1)
    doors: int = Field(1, ge=1)
    cpus: float = Field(1, ge=0)
    gpus: float = Field(0, ge=0)
    busy: float = Field(8, gt=0)
    patience: float = Field(30, gt=0)

    @property
    def most(self) -> int:
        """As many replicas as there may be."""
        return max(self.most_replicas or 0, self.replicas)


@serve.deployment(
    request_router_config=RequestRouterConfig(request_router_class=_ROUTER),
    health_check_period_s=10,
)
class Replica:
    """The service around one model, called with requests instead of listening for them.

    Args:
        settings: the service's, by the names that files have.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = Settings.model_validate(settings)
        set_up_logs(self._settings.log_format, self._settings.log_level)
        loaded = load(self._settings, _log.info)
        self._engine = engine_of(loaded, self._settings, calibration_directory(self._settings.calibration))
        self._app = create_app(self._engine, self._settings)
        self._life = self._app.router.lifespan_context(self._app)
        self._beginning = asyncio.Lock()
        self._begun = False

    async def answer(self, scope: Scope, content: bytes) -> AsyncIterator[Message]:
        """What the service sends in reply to a request; leaving it early is the client's going away.

        Args:
            scope: the request's, as far as it can be sent to another process.
            content: its body.
        """
        await self._begin()
        sent: asyncio.Queue[Message | None] = asyncio.Queue(maxsize=16)  # who reads slowly holds the answer up
        gone = asyncio.Event()
        body: list[Message] = [{"type": "http.request", "body": content, "more_body": False}]

        async def receive() -> Message:
            if body:
                return body.pop()
            await gone.wait()
            return {"type": "http.disconnect"}

        async def run() -> None:
            try:
                await self._app({**scope, "app": self._app}, receive, sent.put)
            finally:
                await sent.put(None)

        task = asyncio.create_task(run())
        try:
            while (message := await sent.get()) is not None:
                yield message
            await task
        finally:
            gone.set()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _begin(self) -> None:
        async with self._beginning:
            if not self._begun:
                await self._life.__aenter__()
                self._begun = True

    async def __del__(self) -> None:
        if self._begun:
            self._begun = False
            await self._life.__aexit__(None, None, None)
            self._engine.close()


class Passed(Response):
    """A reply that another process gives.

    Args:
        replica: which one.
        request: the request's scope.
        content: its body.
    """

    def __init__(self, replica: DeploymentHandle, request: Scope, content: bytes) -> None:
        super().__init__()
        self._replica = replica
        self._request = request
        self._content = content

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        coming = self._replica.remote(self._request, self._content)
        passing = asyncio.create_task(_pass(coming, send))
        leaving = asyncio.create_task(_left(receive))
        try:
            await asyncio.wait((passing, leaving), return_when=asyncio.FIRST_COMPLETED)
            if passing.done():
                await passing
        finally:
            coming.cancel()
            for task in (passing, leaving):
                task.cancel()
            await asyncio.gather(passing, leaving, return_exceptions=True)


async def _pass(coming: AsyncIterator[Message], send: Send) -> None:
    async for message in coming:
        if message["type"] == "http.response.start":
            headers = [pair for pair in message["headers"] if pair[0].lower() not in _NO_LENGTH]
            await send({**message, "headers": headers})
        else:
            await send(message)


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def session_of(path: str, headers: Mapping[str, str], content: bytes) -> str:
    """A name for what a request is about, sixteen hexadecimal digits: requests of the same name profit from each other.

    Args:
        path: of the request.
        headers: of the request; their names in small letters.
        content: its body.
    """
    if (edit := _EDIT.fullmatch(path)) is not None:
        return edit[1]  # the end of an edit goes where it runs
    about = headers.get(_SESSION) or _about(content)
    digest = hashlib.sha256()
    for part in (headers.get("authorization", ""), about):
        digest.update(hashlib.sha256(part.encode("utf-8", "surrogatepass")).digest())
    return digest.hexdigest()[:16]


def _about(content: bytes) -> str:
    """The document that a body names, or else how its prompt begins; nothing where there is neither."""
    try:
        body = from_json(content)
    except ValueError:
        return ""
    if not isinstance(body, dict):
        return ""
    document = body.get("document")
    if isinstance(document, dict):
        return str(document.get("uri") or _beginning(str(document.get("text", ""))))
    messages = body.get("messages")
    if isinstance(messages, list):
        # What the system says is the same for all of a client's chats.
        asked = [one for one in messages if isinstance(one, dict) and one.get("role") not in ("system", "developer")]
        return _beginning("\n".join(str(one.get("content")) for one in asked))
    return _beginning(str(body.get("prompt", ""))) if "input_prefix" not in body else ""


def _beginning(text: str) -> str:
    """The part of a text before what is asked about it, which comes last and is short: half of it or less, so long that
    texts of about the same length are cut at the same place."""
    half = len(text) // 2
    return text[: min(1 << (half.bit_length() - 1), _BEGINNING)] if half else ""


# Ray takes a copy of the routes where the class is made, so what they use stands above.
@serve.deployment(health_check_period_s=10)
@serve.ingress(door)
class Door:
    """Takes requests, and passes each to the replica that has seen its document.

    Args:
        replicas: all of them.
        settings: the service's, by the names that files have.
    """

    def __init__(self, replicas: DeploymentHandle, settings: Mapping[str, Any]) -> None:
        self._replicas = replicas
        self._intake = Intake(Settings.model_validate(settings))

    @door.api_route("/{path:path}", methods=["GET", "HEAD", "POST", "DELETE", "OPTIONS"])
    async def take(self, request: Request) -> Response:
        """Any request."""
        if request.url.path == "/metrics":
            message = "Each replica has its own metrics; Ray's tell of all of them."
            return error_response(ApiError(404, message, code="not_found"))
        try:
            async with self._intake.body(request) as content:
                session = await asyncio.to_thread(session_of, request.url.path, request.headers, content)
        except ApiError as error:
            return error_response(error)
        names = ("type", "method", "path", "raw_path", "query_string", "headers", "http_version", "scheme")
        scope = {name: request.scope[name] for name in (*names, "root_path", "server", "client")}
        scope[CHOSEN_ID] = f"edit-{session}-{uuid4().hex}"
        replica = self._replicas.options(method_name="answer", stream=True, session_id=session)
        return Passed(replica, scope, content)


def build(arguments: dict[str, Any]) -> serve.Application:
    """The application.

    Args:
        arguments: of :class:`Scale`, and settings of the service.

    Raises:
        LookupSpecError: a setting is wrong.
        ValueError: a number of replicas is wrong, or a setting does not go with several of them.
    """
    ours = {name: value for name, value in arguments.items() if name in Scale.model_fields}
    scale = Scale.model_validate(ours)
    flags = {name: value for name, value in arguments.items() if name not in ours}
    settings = load_settings(flags, os.environ)
    if settings.batch_folder is not None:
        raise ValueError("batch_dir does not go with replicas, each of which would want it; use lookup-spec batch run.")
    places = settings.max_sessions + settings.max_waiting
    replicas = Replica.options(  # type: ignore[attr-defined]  # the decorator makes a deployment of the class
        autoscaling_config=AutoscalingConfig(
            min_replicas=scale.replicas,
            max_replicas=scale.most,
            target_ongoing_requests=scale.busy,
            upscale_delay_s=scale.patience,
            look_back_period_s=scale.patience,
            metrics_interval_s=min(scale.patience / 2, _MEASURED),
        ),
        max_ongoing_requests=places,
        ray_actor_options={"num_cpus": scale.cpus, "num_gpus": scale.gpus},
        graceful_shutdown_timeout_s=settings.grace_seconds,
    )
    doors = Door.options(  # type: ignore[attr-defined]  # likewise
        num_replicas=scale.doors, max_ongoing_requests=places * scale.most
    )
    return doors.bind(replicas.bind(settings.model_dump(by_alias=True)), settings.model_dump(by_alias=True))

"""OpenAI's files and batches."""

from __future__ import annotations

import asyncio
import shutil
import time
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import Field
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException
from starlette.responses import FileResponse

from lookup_server import body as bodies
from lookup_server.batches.records import Kind, Record
from lookup_server.batches.reply_forms import BatchForm, BatchPage, FileForm, FilePage, Removed
from lookup_server.batches.service import Batches
from lookup_server.body import Body
from lookup_server.calls import call_of
from lookup_server.errors import ApiError, bad_request
from lookup_server.routes.documented import BODY, documented, replies
from lookup_server.routes.state import State, state_of
from lookup_server.wire import Json

router = APIRouter(tags=["batches"])

_FILE_FIELDS = {
    "file": {"type": "string", "format": "binary"},
    "purpose": {"enum": ["batch", "user_data"]},
    "expires_after[anchor]": {"const": "created_at"},
    "expires_after[seconds]": {"type": "string", "pattern": "^[0-9]+$"},
}
_FILE_SCHEMA = {"type": "object", "properties": _FILE_FIELDS, "required": ["file", "purpose"]}
_FILE_BODY = {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": _FILE_SCHEMA}}}}

_WINDOW = 24 * 3600  # seconds
_MOST_LISTED = 10_000
_SHORTEST, _LONGEST = 3600, 2_592_000  # seconds that a file may be kept, if it is not kept for ever
_MOST_DIGITS = 12
_INTERNAL = ("ending", "output_expires_after")


class Expiry(Body):
    """How long a file is kept."""

    anchor: Literal["created_at"]
    seconds: Annotated[int, Field(ge=_SHORTEST, le=_LONGEST)]


class BatchRequest(Body):
    """A body for ``/v1/batches``."""

    input_file_id: str
    endpoint: Literal["/v1/chat/completions", "/v1/completions"]
    completion_window: Literal["24h"]
    metadata: dict[str, str] | None = None
    output_expires_after: Expiry | None = None


@router.post("/files", openapi_extra=_FILE_BODY, responses=replies(FileForm, *BODY, 404))
async def upload(request: Request) -> Response:
    """Keeps a file."""
    state, batches = _batches(request)
    limit = state.settings.max_file_bytes
    length = request.headers.get("content-length", "")
    if not length.isdecimal() or int(length) > limit + (1 << 16):
        message = f"The file is larger than {limit} bytes, or its size was not told; send less."
        raise ApiError(413, message, code="body_too_large", headers={"connection": "close"})
    try:
        async with state.intake.form(request, files=1, fields=8) as form:
            file, purpose = form.get("file"), form.get("purpose")
            if not isinstance(file, UploadFile):
                raise bad_request("The field file is missing; send the file as multipart/form-data.", "file")
            if purpose not in ("batch", "user_data"):
                raise bad_request(f"The field purpose is {purpose!r}; give 'batch'.", "purpose")
            lifetime = _lifetime(form.get("expires_after[anchor]"), form.get("expires_after[seconds]"))
            name = file.filename or "file"
            record = await asyncio.to_thread(
                _keep, batches, call_of(request.scope).tenant, file, name, purpose, lifetime
            )
    except MultiPartException as error:
        raise bad_request(f"The body cannot be read ({error.message}).") from error
    return Json(record)


@router.get("/files", responses=replies(FilePage, 400, 404))
async def files(
    request: Request,
    after: str | None = None,
    limit: int = _MOST_LISTED,
    order: str = "desc",
    purpose: str | None = None,
) -> Response:
    """The caller's files."""
    return Json(_page(request, "file", after, limit, _MOST_LISTED, order, purpose))


@router.get("/files/{name}", responses=replies(FileForm, 404))
async def file(request: Request, name: str) -> Response:
    """What is known about a file."""
    return Json(_file(request, name))


@router.get(
    "/files/{name}/content", response_class=FileResponse, responses=replies(None, 404, media="application/octet-stream")
)
async def content(request: Request, name: str) -> Response:
    """A file's bytes."""
    found = _file(request, name)
    return FileResponse(
        _batches(request)[1].store.path(found), media_type="application/octet-stream", filename=found["filename"]
    )


@router.delete("/files/{name}", responses=replies(Removed, 404, 409))
async def delete(request: Request, name: str) -> Response:
    """Removes a file."""
    found, (_, batches) = _file(request, name), _batches(request)
    if batches.store.is_needed(call_of(request.scope).tenant, found):
        message = f"The file {name} is needed by a batch that is not finished; cancel that first."
        raise ApiError(409, message, code="file_in_use", headers={"x-should-retry": "false"})
    await asyncio.to_thread(batches.store.remove, found)
    return Json({"id": name, "object": "file", "deleted": True})


@router.post("/batches", openapi_extra=documented(BatchRequest), responses=replies(BatchForm, *BODY, 404, 503))
async def create(request: Request) -> Response:
    """Begins a batch."""
    state, batches = _batches(request)
    body = await bodies.read(request, BatchRequest, state.intake)
    tenant, now = call_of(request.scope).tenant, int(time.time())
    found = batches.store.file(tenant, body.input_file_id)
    if found is None:
        raise bad_request(f"There is no file {body.input_file_id}.", "input_file_id")
    if found["purpose"] != "batch":
        raise bad_request(f"The file's purpose is {found['purpose']!r}; upload it for 'batch'.", "input_file_id")
    batch = batches.store.records.add("batch", tenant, _new(body, state.names[0], now))
    batches.worker.take(tenant, batch)
    return Json(_shown(batch))


@router.get("/batches", responses=replies(BatchPage, 400, 404))
async def listing(request: Request, after: str | None = None, limit: int = 20) -> Response:
    """The caller's batches, the newest first."""
    return Json(_page(request, "batch", after, limit, 100, "desc", None))


@router.get("/batches/{name}", responses=replies(BatchForm, 404))
async def batch(request: Request, name: str) -> Response:
    """Where a batch stands."""
    found = _batches(request)[1].store.records.get("batch", call_of(request.scope).tenant, name)
    if found is None:
        raise _missing("batch", name)
    return Json(_shown(found))


@router.post("/batches/{name}/cancel", responses=replies(BatchForm, 404, 409))
async def cancel(request: Request, name: str) -> Response:
    """Ends a batch early; what is finished is kept."""
    found = _batches(request)[1].worker.cancel(call_of(request.scope).tenant, name)
    if found is None:
        raise _missing("batch", name)
    if found["status"] not in ("cancelling", "cancelled"):
        message = f"The batch is {found['status']} and cannot be cancelled."
        raise ApiError(409, message, code="batch_ended", headers={"x-should-retry": "false"})
    return Json(_shown(found))


def _new(body: BatchRequest, model: str, now: int) -> Record:
    expiry = body.output_expires_after
    times = ("in_progress", "finalizing", "completed", "failed", "expired", "cancelling", "cancelled")
    return {
        "object": "batch",
        "endpoint": body.endpoint,
        "model": model,
        "errors": None,
        "input_file_id": body.input_file_id,
        "completion_window": body.completion_window,
        "status": "validating",
        "output_file_id": None,
        "error_file_id": None,
        "created_at": now,
        "expires_at": now + _WINDOW,
        **{f"{name}_at": None for name in times},
        "request_counts": {"total": 0, "completed": 0, "failed": 0},
        "usage": None,
        "metadata": body.metadata,
        "output_expires_after": None if expiry is None else {"anchor": expiry.anchor, "seconds": expiry.seconds},
        "ending": None,
    }


def _page(
    request: Request, kind: Kind, after: str | None, limit: int, most: int, order: str, purpose: str | None
) -> dict[str, Any]:
    if not 1 <= limit <= most:
        raise bad_request(f"The parameter limit is {limit}; give 1 to {most}.", "limit")
    records, tenant = _batches(request)[1].store.records, call_of(request.scope).tenant
    if after is not None and records.get(kind, tenant, after) is None:
        raise _missing(kind, after)
    found = records.page(kind, tenant, after, limit + 1, ascending=order == "asc")
    shown = [_shown(one) for one in found[:limit] if purpose in (None, one.get("purpose"))]
    ends = {"first_id": shown[0]["id"] if shown else None, "last_id": shown[-1]["id"] if shown else None}
    return {"object": "list", "data": shown, **ends, "has_more": len(found) > limit}


def _file(request: Request, name: str) -> Record:
    found = _batches(request)[1].store.file(call_of(request.scope).tenant, name)
    if found is None:
        raise _missing("file", name)
    return found


def _keep(batches: Batches, tenant: str, file: UploadFile, name: str, purpose: str, lifetime: int | None) -> Record:
    arriving = batches.store.arriving()
    try:
        with arriving.open("wb") as target:
            shutil.copyfileobj(file.file, target, 1 << 20)
        return batches.store.add(tenant, arriving, name, purpose, lifetime)
    finally:
        arriving.unlink(missing_ok=True)


def _lifetime(anchor: object, seconds: object) -> int | None:
    if anchor is None and seconds is None:
        return None
    digits = seconds if isinstance(seconds, str) and seconds.isdecimal() and len(seconds) < _MOST_DIGITS else "0"
    if anchor != "created_at" or not _SHORTEST <= int(digits) <= _LONGEST:
        wanted = f"anchor created_at and {_SHORTEST} to {_LONGEST} seconds"
        raise bad_request(f"The field expires_after is wrong; give {wanted}.", "expires_after")
    return int(digits)


def _batches(request: Request) -> tuple[State, Batches]:
    state = state_of(request)
    if state.batches is None:
        message = "This server keeps no files and batches; start it with --batch-dir."
        raise ApiError(404, message, code="not_found")
    return state, state.batches


def _shown(record: Record) -> Record:
    return {name: value for name, value in record.items() if name not in _INTERNAL}


def _missing(kind: str, name: str) -> ApiError:
    return ApiError(404, f"There is no {kind} {name}.", code="not_found")

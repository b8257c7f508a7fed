"""Request bodies: read within limits, then checked."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from starlette.requests import ClientDisconnect, Request

from lookup_server.errors import ApiError, from_validation
from lookup_server.settings import Settings


class Body(BaseModel):
    """A JSON object of which every field is known. A field that is missing or null has its default."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_default(cls, body: Any) -> Any:
        return {name: value for name, value in body.items() if value is not None} if isinstance(body, dict) else body


T = TypeVar("T", bound=BaseModel)

_SMALL = 1 << 16  # bytes that are parsed faster than a thread is reached


async def read(request: Request, model: type[T], settings: Settings) -> T:
    """The request's JSON body as a checked value, whatever content type it claims to have.

    Raises:
        ApiError: too large (413), too slow (408), no JSON or not of the model's form (400).
    """
    return await check(await receive(request, settings), model)


async def receive(request: Request, settings: Settings) -> bytes:
    """The request's body.

    Raises:
        ApiError: too large (413) or too slow (408).
    """
    try:
        return await asyncio.wait_for(_collect(request, settings.max_body_bytes), settings.body_seconds)
    except asyncio.TimeoutError:
        message = f"The body did not arrive within {settings.body_seconds:g} seconds."
        raise ApiError(408, message, headers={"connection": "close", "x-should-retry": "false"}) from None


async def check(body: bytes, model: type[T]) -> T:
    """A JSON body as a checked value.

    Raises:
        ApiError: no JSON or not of the model's form (400).
    """
    try:
        if len(body) <= _SMALL:
            return model.model_validate_json(body)
        return await asyncio.to_thread(model.model_validate_json, body)
    except ValidationError as error:
        raise from_validation(error, model) from None


async def _collect(request: Request, limit: int) -> bytes:
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > limit:
        raise _too_large(limit)
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > limit:
                raise _too_large(limit)
    except ClientDisconnect:
        raise ApiError(499, "The client went away.") from None
    return bytes(body)


def _too_large(limit: int) -> ApiError:
    # The rest of the body is not read, so the connection cannot be used again.
    message = f"The body is larger than {limit} bytes; send less."
    return ApiError(413, message, code="body_too_large", headers={"connection": "close"})

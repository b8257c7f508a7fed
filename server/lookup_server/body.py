"""Request bodies: the form that all have in common, and whether one has its form."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cache, partial
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, ValidationError, model_validator
from pydantic_core import CoreSchema
from starlette.requests import Request

from lookup_server.errors import from_validation
from lookup_server.intake import Intake


def _lists_fail_fast(schema: Any) -> Any:
    """A schema all of whose lists are refused for their first wrong item."""
    if isinstance(schema, dict):
        inner = {name: _lists_fail_fast(value) for name, value in schema.items()}
        return {**inner, "fail_fast": True} if inner.get("type") == "list" else inner
    return [_lists_fail_fast(one) for one in schema] if isinstance(schema, list) else schema


class Body(BaseModel):
    """A JSON object of which every field is known. A field that is missing or null has its default.

    The first thing wrong is enough: a body that is wrong in a million places takes no longer to refuse.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return cast(CoreSchema, _lists_fail_fast(handler(source)))

    @model_validator(mode="before")
    @classmethod
    def _null_is_default(cls, body: Any) -> Any:
        if not isinstance(body, dict):
            return body
        known = _fields(cls)
        given = {name: value for name, value in body.items() if value is not None}
        unknown = next((name for name in given if name not in known), None)
        return {name: value for name, value in given.items() if name in known or name == unknown}


@cache
def _fields(model: type[Body]) -> frozenset[str]:
    return frozenset(field.alias or name for name, field in model.model_fields.items())


T = TypeVar("T", bound=BaseModel)
R = TypeVar("R")

_SMALL = 1 << 16  # bytes that are parsed faster than a thread is reached


async def read(request: Request, model: type[T], intake: Intake) -> T:
    """The request's JSON body as a checked value, whatever content type it claims to have.

    Raises:
        ApiError: too large (413), too slow (408), no room (429), no JSON or not of the model's form (400).
    """
    async with intake.body(request) as data:
        return await check(data, model)


async def check(body: bytes, model: type[T]) -> T:
    """A JSON body as a checked value.

    Raises:
        ApiError: no JSON or not of the model's form (400).
    """
    return await aside(body, partial(_checked, model))


async def aside(body: bytes, work: Callable[[bytes], R]) -> R:
    """Does work on a body: beside the event loop, if it is long."""
    return work(body) if len(body) <= _SMALL else await asyncio.to_thread(work, body)


def _checked(model: type[T], body: bytes) -> T:
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise from_validation(error, model) from None

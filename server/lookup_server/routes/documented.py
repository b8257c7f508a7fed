"""What the API's description says of bodies and replies, which the framework does not see: both are made by hand."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel, TypeAdapter

from lookup_server.reply_forms import Error

_PROBLEMS = {
    400: "A field or the form of the request is wrong; `param` names the field.",
    401: "The key is missing or wrong.",
    404: "There is no such thing, or none of the caller's.",
    408: "The body did not arrive in time.",
    409: "What the request is about has changed or is in use.",
    413: "The body is too large.",
    422: "The model's answer cannot be read as an edit.",
    429: "Too many requests wait or arrive; `retry-after` says when to come back.",
    500: "Something unforeseen; the log has the details.",
    501: "The model was not trained for this.",
    503: "The service is about to end, or has no place free.",
    504: "The answer took longer than this service allows.",
}
BODY = (400, 408, 413, 429)
"""What goes wrong with any body."""
ANSWER = (*BODY, 404, 503, 504)
"""What goes wrong with any request for an answer."""


def documented(*models: type[BaseModel]) -> dict[str, Any]:
    """A body's form, or forms."""
    # The id makes the schema's references start from the schema itself.
    schemas = [{"$id": model.__name__, **model.model_json_schema()} for model in models]
    schema = schemas[0] if len(schemas) == 1 else {"oneOf": schemas}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def replies(
    form: Any, *problems: int, streams: bool = False, media: str = "application/json"
) -> dict[int | str, dict[str, Any]]:
    """A route's replies: its own form, and what can go wrong there besides a wrong key.

    Args:
        form: a type whose JSON schema is that of the reply; None for a reply that is not JSON.
        problems: statuses of refusals.
        streams: the reply may be a stream of events instead.
        media: what the reply is.
    """
    content = {media: {"schema": {"type": "string"} if form is None else _schema(form)}}
    if streams:
        content["text/event-stream"] = {"schema": {"type": "string"}}
    told: dict[int | str, dict[str, Any]] = {200: {"description": "The reply.", "content": content}}
    for status in sorted({*problems, 401, 500}):
        told[status] = {"model": Error, "description": _PROBLEMS[status]}
    return told


def _schema(form: Any) -> dict[str, Any]:
    """A form's schema, for replies as they are sent; its references start from itself."""
    schema = TypeAdapter(form).json_schema(mode="serialization")
    return {"$id": f"{schema.get('title', 'reply')}.json", **schema}


def without_the_frameworks_own(app: FastAPI) -> None:
    """Takes out of a description the reply with which the framework would refuse parameters: it never comes."""
    described = app.openapi

    def openapi() -> dict[str, Any]:
        told = described()
        for operations in told["paths"].values():
            for operation in operations.values():
                refusal = operation["responses"].get("422", {})
                if "HTTPValidationError" in str(refusal):
                    del operation["responses"]["422"]
        for name in ("HTTPValidationError", "ValidationError"):
            told["components"]["schemas"].pop(name, None)
        return told

    app.openapi = openapi  # type: ignore[method-assign]

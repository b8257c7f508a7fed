"""Everything that can go wrong with a call, in the one shape that OpenAI clients read."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, NoReturn

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from lookup_spec.errors import ContextLengthError, EditError, InvalidRequestError, LookupSpecError

_log = logging.getLogger(__name__)


class ApiError(Exception):
    """An answer that is an error.

    Args:
        status: HTTP status.
        message: one sentence for the caller.
        type: OpenAI's class of error.
        param: the field that was wrong, if there is one.
        code: a word for programs, if there is one.
        headers: to send along.
        details: further keys of the error object.
    """

    def __init__(
        self,
        status: int,
        message: str,
        type: str = "invalid_request_error",
        *,
        param: str | None = None,
        code: str | int | None = None,
        headers: Mapping[str, str] | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.type = type
        self.param = param
        self.code = code
        self.headers = dict(headers or {})
        self.details = dict(details or {})

    def body(self) -> dict[str, Any]:
        """The JSON body; all four keys are always there."""
        error = {"message": self.message, "type": self.type, "param": self.param, "code": self.code}
        return {"error": {**error, **self.details}}


class RefusedFieldError(ValueError):
    """A field whose value goes against another field, or asks for what is not implemented."""

    def __init__(self, param: str, reason: str) -> None:
        super().__init__(f"The field {param} is wrong: {reason}.")
        self.param = param


def refuse(param: str, reason: str) -> NoReturn:
    """Refuses a body, while it is being checked, for one of its fields."""
    raise RefusedFieldError(param, reason)


def bad_request(message: str, param: str | None = None) -> ApiError:
    """A request that can never be served as it stands."""
    return ApiError(400, message, param=param)


def overloaded(running: int, seconds: int) -> ApiError:
    """A request that may be served if sent again after so many seconds."""
    message = f"The server is busy with {running} answers and its queue is full; try again in {seconds} s."
    return ApiError(429, message, "rate_limit_error", code="overloaded", headers={"retry-after": str(seconds)})


def crowded(room: int) -> ApiError:
    """A request whose body may be taken in if sent again."""
    message = f"The server is receiving other requests of {room} bytes, all it has room for; try again in 1 s."
    # The rest of the body is not read, so the connection cannot be used again.
    headers = {"retry-after": "1", "connection": "close"}
    return ApiError(429, message, "rate_limit_error", code="overloaded", headers=headers)


def too_late(seconds: float) -> ApiError:
    """An answer that took longer than the operator lets any take."""
    message = f"The answer was not complete after {seconds:g} s, the most that this server allows; ask for less."
    return ApiError(504, message, "timeout_error", code="request_timeout", headers={"x-should-retry": "false"})


def shutting_down() -> ApiError:
    """The service is about to end."""
    return ApiError(503, "The server is shutting down.", "unavailable_error", code="shutting_down")


def from_exception(error: Exception) -> ApiError:
    """What to tell the caller about an exception; one that is not meant for users goes to the log instead."""
    match error:
        case ApiError():
            found = error
        case ContextLengthError():
            numbers = {"n_prompt_tokens": error.prompt_tokens, "n_ctx": error.context_length}
            found = ApiError(400, str(error), param=error.param, code="context_length_exceeded", details=numbers)
        case InvalidRequestError():
            found = bad_request(str(error), error.param)
        case EditError():
            # Asked again, the model would say the same.
            headers = {"x-should-retry": "false"}
            found = ApiError(422, str(error), "edit_error", code="unreadable_answer", headers=headers)
        case LookupSpecError():
            found = ApiError(500, str(error), "server_error")
        case _:
            _log.error("a request failed", exc_info=error)
            found = ApiError(500, "The server met an unexpected error; its log has the details.", "server_error")
    return found


def from_validation(error: ValidationError, model: type[BaseModel]) -> ApiError:
    """The first thing wrong with a body.

    Args:
        error: what pydantic found.
        model: the form that the body should have.
    """
    found = error.errors(include_url=False)
    first = found[0]
    kind, cause = first["type"], first.get("ctx", {}).get("error")
    if isinstance(cause, RefusedFieldError):
        return bad_request(str(cause), cause.param)
    if kind == "json_invalid":
        return bad_request(f"The body cannot be read ({first['msg']}).")
    if not first["loc"]:
        return bad_request("The body is not a JSON object; send one with the request's fields.")
    if _branch(first["loc"]):
        # A value that fits no member of a union has errors for each; the one it was meant for goes deepest.
        form = model.model_fields[str(first["loc"][0])].description
        if form is not None:
            return bad_request(f"The field {first['loc'][0]} is wrong; give {form}.", str(first["loc"][0]))
        first = max((one for one in found if one["loc"][:1] == first["loc"][:1]), key=lambda one: len(one["loc"]))
    return bad_request(_complaint(first, model), _name(first["loc"]))


def _complaint(first: ErrorDetails, model: type[BaseModel]) -> str:
    param, kind = _name(first["loc"]), first["type"]
    if kind == "extra_forbidden":
        close = get_close_matches(param, model.model_fields, n=1)
        hint = f"did you mean {close[0]}?" if close else "leave it out."
        return f"The field {param} is not supported here; {hint}"
    if kind == "missing":
        return f"The field {param} is missing; add it."
    return f"The field {param} is wrong: {first['msg'].removeprefix('Value error, ')}."


def _branch(place: tuple[int | str, ...]) -> bool:
    """Whether a place leads through a union: pydantic names the member by its type."""
    return any(part in ("str", "int") or "[" in str(part) for part in place[1:])


def _name(place: tuple[int | str, ...]) -> str:
    """A place as callers write it: ``messages[0].content``."""
    parts = (part for part in place if not _branch(("", part)))
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts).removeprefix(".")

"""JSON as clients expect it: compact, on one line, and safe inside an event stream."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from lookup_server.errors import ApiError

# Some clients take these for line ends. In JSON they stand inside strings only, where escapes mean the same.
_LINE_ENDS = [(end, f"\\u{ord(end):04x}") for end in "\x85\u2028\u2029"]
_SLICE = 4096  # items


def dump(value: Any) -> str:
    """One line of JSON. NaN and infinities are refused: they are not JSON."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for end, escaped in _LINE_ENDS:
        text = text.replace(end, escaped)
    return text


class Json(Response):
    """A JSON answer."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return dump(content).encode("utf-8", errors="replace")


class LongJson(Json):
    """An answer whose lists may have millions of items; other threads have a turn between every few thousand."""

    def render(self, content: Mapping[str, Any]) -> bytes:
        fields = (
            f"{dump(name)}:{_slices(value) if isinstance(value, list) else dump(value)}"
            for name, value in content.items()
        )
        return f"{{{','.join(fields)}}}".encode("utf-8", errors="replace")


def _slices(items: Sequence[Any]) -> str:
    # The encoder holds the interpreter's lock from the first item to the last.
    return f"[{','.join(dump(items[start : start + _SLICE])[1:-1] for start in range(0, len(items), _SLICE))}]"


def error_response(error: ApiError) -> Json:
    """An error as an answer of its own."""
    return Json(error.body(), error.status, dict(error.headers))

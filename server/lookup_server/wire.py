"""JSON as clients expect it: compact, on one line, and safe inside an event stream."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response

from lookup_server.errors import ApiError

# Some clients take these for line ends. In JSON they stand inside strings only, where escapes mean the same.
_LINE_ENDS = str.maketrans({end: f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"})


def dump(value: Any) -> str:
    """One line of JSON. NaN and infinities are refused: they are not JSON."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_LINE_ENDS)


class Json(Response):
    """A JSON answer."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return dump(content).encode("utf-8", errors="replace")


def error_response(error: ApiError) -> Json:
    """An error as an answer of its own."""
    return Json(error.body(), error.status, dict(error.headers))

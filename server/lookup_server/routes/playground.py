"""A page to try the service with."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, Response

from lookup_server.errors import ApiError

router = APIRouter(include_in_schema=False)

_FOLDER = Path(__file__).parent.parent / "playground"
# Named here, for what a system takes these suffixes for differs.
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
# The page needs nothing from elsewhere, and nothing it shows can make it ask.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    # A page and the modules of another version would not fit together.
    "cache-control": "no-cache",
}


@router.api_route("/", methods=["GET", "HEAD"])
async def playground() -> Response:
    """The page."""
    return await part("index.html")


@router.api_route("/playground/{name}", methods=["GET", "HEAD"])
async def part(name: str) -> Response:
    """One of the files that the page is made of.

    Raises:
        ApiError: there is no such file.
    """
    path = _PARTS.get(name)
    if path is None:
        raise ApiError(404, f"The playground has no file {name!r}.", code="not_found")
    return Response(path.read_bytes(), headers=_HEADERS, media_type=_TYPES[path.suffix])


_PARTS = {path.name: path for path in _FOLDER.iterdir() if path.suffix in _TYPES}

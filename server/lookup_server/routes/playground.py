"""A page to try the service with."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, Response
from starlette.responses import HTMLResponse

router = APIRouter(include_in_schema=False)

_PAGE = Path(__file__).parent.parent / "playground" / "index.html"
# The page needs nothing from elsewhere, and nothing it shows can make it ask.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:"


@router.api_route("/", methods=["GET", "HEAD"])
async def playground() -> Response:
    """The page, whole: it loads nothing else."""
    headers = {"content-security-policy": _POLICY, "x-content-type-options": "nosniff"}
    return HTMLResponse(_PAGE.read_text(encoding="utf-8"), headers=headers)

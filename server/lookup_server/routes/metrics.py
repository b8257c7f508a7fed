"""What a Prometheus server reads."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse

from lookup_server.access import METRICS
from lookup_server.metrics import CONTENT_TYPE
from lookup_server.routes.documented import replies
from lookup_server.routes.state import state_of

router = APIRouter(tags=["service"])


@router.get(METRICS, response_class=PlainTextResponse, responses=replies(None, media="text/plain"))
async def metrics(request: Request) -> Response:
    """Counters, gauges and histograms in Prometheus's text form."""
    return Response(state_of(request).metrics.text(), media_type=CONTENT_TYPE)

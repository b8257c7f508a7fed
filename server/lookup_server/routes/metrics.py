"""What a Prometheus server reads."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from lookup_server.access import METRICS
from lookup_server.metrics import CONTENT_TYPE
from lookup_server.routes.state import state_of

router = APIRouter(tags=["service"])


@router.get(METRICS)
async def metrics(request: Request) -> Response:
    """Counters, gauges and histograms in Prometheus's text form."""
    return Response(state_of(request).metrics.text(), media_type=CONTENT_TYPE)

"""The service that edits and fills in, over HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any
from urllib.parse import urlsplit

import httpx

from lookup_spec.errors import LookupSpecError

Json = dict[str, Any]

_HERE = ("127.0.0.1", "localhost", "::1")
_CONNECT_SECONDS = 5.0


class ServiceError(LookupSpecError):
    """The service refused, failed, or is not there; the message is for the user."""


class Service:
    """A client of one service.

    Args:
        url: where it listens, without ``/v1``.
        key: the API key; empty if it wants none.
    """

    def __init__(self, url: str, key: str = "") -> None:
        self._url = url.rstrip("/")
        headers = {"authorization": f"Bearer {key}"} if key else {}
        # No proxy stands between this machine and itself.
        outside = urlsplit(self._url).hostname not in _HERE
        self._client = httpx.AsyncClient(
            base_url=self._url,
            headers=headers,
            timeout=httpx.Timeout(None, connect=_CONNECT_SECONDS),
            trust_env=outside,
        )

    async def edit(self, body: Json) -> AsyncGenerator[Json, None]:
        """The events of an edit, its ``done`` last; closing the iterator stops the work.

        Raises:
            ServiceError: it did not come to its end.
        """
        try:
            async with self._client.stream("POST", "/v1/edits", json={**body, "stream": True}) as response:
                if response.is_error:
                    await response.aread()
                    raise ServiceError(_complaint(response))
                async for line in response.aiter_lines():
                    if not line.startswith("data: "):
                        continue
                    event: Json = json.loads(line.removeprefix("data: "))
                    if event["type"] == "error":
                        raise ServiceError(event["error"]["message"])
                    yield event
                    if event["type"] == "done":
                        return
        except httpx.HTTPError as error:
            raise self._lost(error) from error
        raise ServiceError("The connection to the service ended before the edit did; nothing was changed.")

    async def fill(self, before: str, line: str, after: str, most: int) -> str:
        """What belongs between two texts.

        Args:
            before: the text before the line of the cursor.
            line: that line, up to the cursor.
            after: the text behind the cursor.
            most: tokens.

        Raises:
            ServiceError: the service or its model cannot.
        """
        body = {
            "input_prefix": before,
            "prompt": line,
            "input_suffix": after,
            "n_predict": most,
            "temperature": 0.0,
        }
        try:
            response = await self._client.post("/infill", json=body)
        except httpx.HTTPError as error:
            raise self._lost(error) from error
        if response.is_error:
            raise ServiceError(_complaint(response))
        return str(response.json()["content"])

    def _lost(self, error: httpx.HTTPError) -> ServiceError:
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            return ServiceError(f"No service answers at {self._url}; start one with: lookup-spec serve")
        return ServiceError("The connection to the service broke; nothing was changed.")


def _complaint(response: httpx.Response) -> str:
    try:
        return str(response.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"The service answered with status {response.status_code}."

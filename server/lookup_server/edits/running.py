"""Edits that are running, so that others can stop them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lookup_server.errors import ApiError
from lookup_server.runner import Stop


class RunningEdits:
    """Which edits run, for the event loop's thread alone."""

    def __init__(self) -> None:
        self._by_id: dict[tuple[str, str], Stop] = {}
        self._by_document: dict[tuple[str, str], Stop] = {}

    @contextmanager
    def entered(self, tenant: str, edit_id: str, uri: str, stop: Stop) -> Iterator[None]:
        """While an edit runs. One of the same document that ran before is stale.

        Args:
            tenant: whose edit it is.
            edit_id: its name.
            uri: the document; an edit of one without a name makes no other stale.
            stop: ends it.
        """
        document = (tenant, uri)
        if uri:
            if document in self._by_document:
                self._by_document[document].reason = "stale"
            self._by_document[document] = stop
        self._by_id[tenant, edit_id] = stop
        try:
            yield
        finally:
            del self._by_id[tenant, edit_id]
            if self._by_document.get(document) is stop:
                del self._by_document[document]

    def cancel(self, tenant: str, edit_id: str) -> None:
        """Ends an edit within a step.

        Raises:
            ApiError: no such edit is running.
        """
        if (tenant, edit_id) not in self._by_id:
            raise ApiError(
                404, f"No edit {edit_id!r} is running; it may have ended.", param="edit_id", code="not_found"
            )
        self._by_id[tenant, edit_id].reason = "cancelled"

"""The forms of replies about files and batches."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from lookup_server.reply_forms import Form


class FileForm(Form):
    """A file that is kept."""

    id: str
    object: Literal["file"]
    bytes: int
    created_at: int
    expires_at: int | None
    filename: str
    purpose: Literal["batch", "batch_output", "user_data"]
    status: Literal["processed"]
    status_details: None


class Removed(Form):
    """A file that is gone."""

    id: str
    object: Literal["file"]
    deleted: Literal[True]


class _Page(Form):
    object: Literal["list"]
    first_id: str | None
    last_id: str | None
    has_more: bool


class FilePage(_Page):
    """Some of the caller's files."""

    data: list[FileForm]


class BatchCounts(Form):
    """Requests of a batch."""

    total: int
    completed: int
    failed: int


class BatchForm(Form):
    """A batch and where it stands."""

    id: str
    object: Literal["batch"]
    endpoint: Literal["/v1/chat/completions", "/v1/completions"]
    model: str
    errors: dict[str, Any] | None
    input_file_id: str
    completion_window: str
    status: Literal[
        "validating", "failed", "in_progress", "finalizing", "completed", "expired", "cancelling", "cancelled"
    ]
    output_file_id: str | None
    error_file_id: str | None
    created_at: int
    in_progress_at: int | None
    expires_at: int | None
    finalizing_at: int | None
    completed_at: int | None
    failed_at: int | None
    expired_at: int | None
    cancelling_at: int | None
    cancelled_at: int | None
    request_counts: BatchCounts
    usage: dict[str, Any] | None
    metadata: dict[str, str] | None = Field(...)


class BatchPage(_Page):
    """Some of the caller's batches."""

    data: list[BatchForm]

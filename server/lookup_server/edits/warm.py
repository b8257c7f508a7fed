"""``/v1/edits/warm``: computes a document before the user has said what to change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lookup_server.edits.documents import Documents
from lookup_server.edits.prepare import files_of, source_of
from lookup_server.edits.reply import EditHead, Json, described
from lookup_server.edits.requests import WarmRequest
from lookup_server.errors import from_exception
from lookup_server.runner import Task
from lookup_spec.engine.session import Piece
from lookup_spec.params import SamplingParams
from lookup_spec.pipeline.edit_plan import EditRequest, known_prompt
from lookup_spec.pipeline.engine import Engine
from lookup_spec.text.edit_task import Instruction
from lookup_spec.text.lines import SourceText


class WarmReply:
    """The reply once the document is computed, or left for something newer.

    Args:
        head: what is known before the document is read.
        body: what was sent.
        source: the document.
    """

    done = b""

    def __init__(self, head: EditHead, body: WarmRequest, source: SourceText) -> None:
        self._whole: Json = {"object": "edit.warm", "model": head.model, "document": described(body.document, source)}

    def opening(self) -> Iterator[dict[str, Any]]:
        """There is no stream."""
        yield from ()

    def chunks(self, _: int, piece: Piece) -> Iterator[dict[str, Any]]:
        """Keeps what the last piece says."""
        if piece.finish_reason is not None:
            self._whole["warm"] = piece.finish_reason != "cancelled"
            self._whole["usage"] = {
                "prompt_tokens": piece.stats.prompt_tokens,
                "prompt_tokens_details": {"cached_tokens": piece.stats.cached_tokens},
            }
        yield from ()

    def closing(self) -> Iterator[dict[str, Any]]:
        """There is no stream."""
        yield from ()

    def breaking(self, error: Exception) -> Iterator[dict[str, Any]]:
        """The error alone."""
        yield from_exception(error).body()

    def whole(self) -> Json:
        """What was computed."""
        return self._whole


def warm_tasks(body: WarmRequest, engine: Engine, head: EditHead, documents: Documents) -> tuple[list[Task], WarmReply]:
    """What to compute: the prompt of an edit up to where the instruction would follow, behind everything urgent.

    Raises:
        ApiError: the document is not known, or a field does not fit it.
        ContextLengthError: it does not fit the model.
    """
    source = source_of(body.document, head.tenant, documents)
    others, language = files_of(body.context), body.document.language_id
    request = EditRequest(source, Instruction("Edit."), body.document.name, language=language, others=others)
    prompt = known_prompt(engine, request)
    task = Task(prompt, SamplingParams(max_tokens=1), speculation=False, priority="batch", stop=head.stop)
    return [task], WarmReply(head, body, source)

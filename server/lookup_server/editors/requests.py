"""Request bodies of Tabby's and Mistral's completion routes, field by field."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, model_validator

from lookup_server.body import Body
from lookup_server.errors import refuse
from lookup_server.openai.requests import SamplingFields
from lookup_server.shared_fields import Number

Seed = Annotated[int, Field(ge=0, lt=2**64)]


class Snippet(Body):
    """A text from elsewhere."""

    filepath: str
    body: str
    score: Number | None = None


class EditHistory(Body):
    """What was done to a text lately."""

    original_code: str
    edits_diff: str
    current_version: str


class Segments(Body):
    """The text around the cursor, and what stands elsewhere. A clipboard and a repository's address are not used."""

    prefix: str
    suffix: str | None = None
    filepath: str | None = None
    git_url: str | None = None
    declarations: list[Snippet] | None = None
    relevant_snippets_from_changed_files: list[Snippet] | None = None
    relevant_snippets_from_recently_opened_files: list[Snippet] | None = None
    clipboard: str | None = None
    edit_history: EditHistory | None = None

    @property
    def snippets(self) -> list[Snippet]:
        """All texts from elsewhere, the most important last."""
        return [
            *(self.relevant_snippets_from_recently_opened_files or ()),
            *(self.relevant_snippets_from_changed_files or ()),
            *(self.declarations or ()),
        ]


class TabbyRequest(Body):
    """A body for Tabby's ``/v1/completions``."""

    segments: Segments
    language: str | None = None
    mode: Literal["standard", "next_edit_suggestion"] | None = None
    temperature: Number | None = None
    seed: Seed | None = None
    model: str | None = None

    # These cannot change an answer.
    user: str | None = None
    debug_options: JsonValue | None = None

    @model_validator(mode="after")
    def _has_a_history(self) -> TabbyRequest:
        if self.mode == "next_edit_suggestion" and self.segments.edit_history is None:
            refuse("segments.edit_history", "it is missing, but mode is 'next_edit_suggestion'")
        return self

    def sampling(self, defaults: dict[str, Any]) -> dict[str, Any]:
        """Arguments for :meth:`lookup_spec.Engine.sampling`."""
        given = {"temperature": self.temperature, "seed": self.seed}
        return {**defaults, **{name: value for name, value in given.items() if value is not None}}


class FimRequest(SamplingFields):
    """A body for ``/v1/fim/completions``."""

    prompt: str
    suffix: str | None = None
    random_seed: Seed | None = None

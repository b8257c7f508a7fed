"""What all APIs' replies have in common, for the API's description.

The other forms stand beside each API. Replies are made by hand; the tests hold them to these forms.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict


class Form(BaseModel):
    """A JSON object with no other fields than those named; one with a default may be missing."""

    model_config = ConfigDict(extra="forbid")


class Problem(Form):
    """What was wrong; the last two are the numbers of a prompt that is too long."""

    message: str
    type: str
    param: str | None
    code: str | int | None
    n_prompt_tokens: int = 0
    n_ctx: int = 0


class Error(Form):
    """Every reply that is none of the others."""

    error: Problem


class PromptDetails(Form):
    """How much of the prompts was not computed again."""

    cached_tokens: int
    audio_tokens: Literal[0] = 0


class CompletionDetails(Form):
    """What became of predictions."""

    reasoning_tokens: Literal[0] = 0
    audio_tokens: Literal[0] = 0
    accepted_prediction_tokens: int = 0
    rejected_prediction_tokens: int = 0


class Usage(Form):
    """Token counts."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails
    completion_tokens_details: CompletionDetails | None = None

"""The forms of replies, for the API's description. Replies are made by hand; the tests hold them to these forms."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue


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


class Health(Form):
    """The service takes requests."""

    status: Literal["ok"]


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


class Likely(Form):
    """A token that might have been."""

    token: str
    logprob: float
    bytes: list[int]


class Chosen(Likely):
    """A token that was chosen."""

    top_logprobs: list[Likely]


class ChatLogprobs(Form):
    """An entry for each token."""

    content: list[Chosen]
    refusal: None


class TextLogprobs(Form):
    """Lists as long as there are tokens."""

    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]] | None
    text_offset: list[int]


class CalledFunction(Form):
    """A function with its arguments as JSON."""

    name: str
    arguments: str


class Call(Form):
    """A call of a tool."""

    id: str
    type: Literal["function"]
    function: CalledFunction


class AnswerMessage(Form):
    """What the assistant says."""

    role: Literal["assistant"]
    content: str | None
    refusal: None
    tool_calls: list[Call] = []


class ChatChoice(Form):
    """One answer."""

    index: int
    message: AnswerMessage
    logprobs: ChatLogprobs | None
    finish_reason: Literal["stop", "length", "tool_calls"]


class _Around(Form):
    id: str
    created: int
    model: str
    system_fingerprint: str
    usage: Usage


class Chat(_Around):
    """A reply to a chat."""

    object: Literal["chat.completion"]
    choices: list[ChatChoice]


class FilledMessage(Form):
    """The text."""

    role: Literal["assistant"]
    content: str


class FilledChoice(Form):
    """One answer, in both places where clients of Mistral's look for it."""

    index: int
    message: FilledMessage
    text: str
    finish_reason: Literal["stop", "length"]


class Filled(_Around):
    """A text that was filled in, in the form of Mistral's service."""

    object: Literal["chat.completion"]
    choices: list[FilledChoice]


class TextChoice(Form):
    """One answer."""

    index: int
    text: str
    logprobs: TextLogprobs | None
    finish_reason: Literal["stop", "length"]


class Text(_Around):
    """A reply to a text completion."""

    object: Literal["text_completion"]
    choices: list[TextChoice]


class TabbyChoice(Form):
    """One answer."""

    index: int
    text: str


class TabbyUsage(Form):
    """Token counts."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int = 0
    prompt_tokens_details: PromptDetails | None = None
    completion_tokens_details: CompletionDetails | None = None


class TabbyText(Form):
    """A reply to Tabby's clients."""

    id: str
    choices: list[TabbyChoice]
    mode: Literal["standard", "next_edit_suggestion"]
    usage: TabbyUsage


class ModelMeta(Form):
    """How long a text may be."""

    n_ctx: int
    n_ctx_train: int


class ModelCard(Form):
    """A name of the model."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    max_model_len: int
    meta: ModelMeta


class ModelCards(Form):
    """All names."""

    object: Literal["list"]
    data: list[ModelCard]


class LinesOf(Form):
    """Lines of the document, counted from 0; the end is not part of it."""

    start_line: int
    end_line: int


class EditedDocument(Form):
    """A document as the service read it."""

    uri: str
    version: int | str | None
    sha256: str
    lines: int
    eol: str
    bom: bool
    final_newline: bool


class EditHunkForm(Form):
    """Lines and what stands in their place."""

    hunk_id: int
    old: LinesOf
    text: str


class EditWhole(Form):
    """A whole edit."""

    object: Literal["edit"]
    edit_id: str
    created: int
    model: str
    mode: Literal["edit", "apply", "next_edit"]
    document: EditedDocument
    range: LinesOf
    shown: LinesOf
    narrowed: bool
    context_files: int
    hunks: list[EditHunkForm]
    text: str
    finish_reason: Literal["stop", "length", "cancelled", "stale", "no_change"]
    truncated: bool
    result_sha256: str
    usage: Usage
    trace: list[dict[str, JsonValue]] = []
    stats: dict[str, JsonValue] = {}


class WarmUsage(Form):
    """Token counts of a prompt."""

    prompt_tokens: int
    prompt_tokens_details: PromptDetails


class Warmed(Form):
    """A document that was computed ahead, or left for something newer."""

    object: Literal["edit.warm"]
    model: str
    document: EditedDocument
    warm: bool
    usage: WarmUsage


class Cancelled(Form):
    """An edit that was told to end."""

    edit_id: str
    cancelled: Literal[True]


class Generated(BaseModel):
    """An answer in llama.cpp's form, or those of its fields that ``response_fields`` named."""

    content: str = ""
    index: int = 0
    tokens: list[int] = []
    stop: bool = True
    model: str = ""
    tokens_predicted: int = 0
    tokens_evaluated: int = 0
    tokens_cached: int = 0
    generation_settings: dict[str, JsonValue] = {}
    prompt: str = ""
    has_new_line: bool = False
    truncated: bool = False
    stop_type: Literal["eos", "limit", "word"] = "eos"
    stopping_word: str = ""
    timings: dict[str, float] = {}


class DefaultSettings(Form):
    """Where a request says nothing."""

    n_ctx: int
    params: dict[str, JsonValue]


class Props(Form):
    """What the server runs."""

    default_generation_settings: DefaultSettings
    total_slots: int
    model_path: str
    model_alias: str
    chat_template: str
    build_info: str


class Slot(Form):
    """A place for an answer."""

    id: int
    is_processing: bool
    n_ctx: int
    speculative: bool
    params: dict[str, JsonValue]


class TokenPiece(Form):
    """A token with its text, or its bytes if they are none."""

    id: int
    piece: str | list[int]


class Tokens(Form):
    """A text's tokens."""

    tokens: list[int] | list[TokenPiece]


class Content(Form):
    """The text of tokens."""

    content: str


class Rendered(Form):
    """A conversation as the model reads it."""

    prompt: str


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

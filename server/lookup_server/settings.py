"""What an operator can decide about the service.

Every setting has one name: ``max_waiting`` in a file, ``--max-waiting`` as a flag, ``LOOKUP_SPEC_MAX_WAITING`` in the
environment. :mod:`lookup_server.configuration` puts these together.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

Positive = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(gt=0, le=1)]
LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]


class _Values(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, populate_by_name=True)


class Alias(_Values):
    """A name of the model, and how it samples for requests that do not say.

    Written as text, it is the name, followed by what it decides: ``edits,temperature=0,max_tokens=4096``.
    """

    name: Annotated[str, Field(min_length=1)]
    temperature: Annotated[float, Field(ge=0, le=100)] | None = None
    top_p: Share | None = None
    top_k: Annotated[int, Field(ge=0)] | None = None
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    repetition_penalty: Positive | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        name, *rest = value.split(",")
        defaults = dict(part.partition("=")[::2] for part in rest)
        return {"name": name, **{key.strip(): text.strip() for key, text in defaults.items()}}

    @property
    def sampling(self) -> dict[str, Any]:
        """What it decides, by the names of :class:`lookup_spec.params.SamplingParams`."""
        return self.model_dump(exclude={"name"}, exclude_none=True)


class Settings(_Values):
    """All settings of the service.

    Attributes:
        model: what to load; None for the embedded default.
        dtype: the model's.
        device: likewise.
        strict: every token's scores have the same bits, whatever runs beside it; None on CPUs that can keep it.
        enforce_eager: passes are launched kernel by kernel on GPUs too, not replayed from captured graphs.
        calibration: a directory that keeps how often guesses came true; ``"off"`` keeps nothing, None takes the usual
            place.
        kv_cache_mb: most memory for keys and values; None takes a share of what is free.
        prefix_cache_mb: as much of that may be kept of ended answers; None takes a share of it.
        host: address to listen on.
        port: TCP port; 0 takes a free one.
        api_keys: keys of which one is needed; empty means none is.
        metrics_key: opens ``/metrics``, and nothing else; None lets any API key open it.
        served_names: what clients may call the model, the first where they name none; empty means the engine's own
            name.
        temperature: used when neither a request nor its name for the model says. OpenAI's default is 1; 0 suits edits.
        strict_openai: the OpenAI routes refuse what OpenAI refuses.
        cors_origins: web origins whose pages may call the service; ``*`` for all.
        max_sessions: answers generated at the same time.
        max_waiting: answers that may wait for their turn; beyond that a request gets 429.
        max_body_mb: largest request body, in megabytes.
        arriving_mb: memory for all bodies that are arriving; beyond that a request gets 429. None takes eight times
            the largest body's.
        max_context_tokens: most tokens of a prompt and its answer together; None for as many as the model holds.
        body_seconds: longest time that the head of a request may take to arrive, and then its body.
        request_seconds: longest time from a request's arrival to the end of its answer; None for no limit.
        send_seconds: a client that takes nothing for so long counts as gone.
        document_mb: memory for the texts of each key's edits, so that the next edit need not send them again.
        batch_folder: where files and batches are kept; None offers neither.
        max_file_mb: largest file, in megabytes.
        heartbeat_seconds: a stream with nothing to say sends a comment this often, so that proxies keep it.
        smooth_stream_ms: streams send equally much this often, whatever there is to say; 0 sends events as they come.
        grace_seconds: at shutdown, how long running answers may take to complete.
        otlp_endpoint: an OpenTelemetry collector's address for traces over HTTP; None makes none.
        log_format: of what is said on stderr.
        log_level: the least important that is said.
    """

    model: str | None = None
    dtype: str = "auto"
    device: str = "auto"
    strict: bool | None = None
    enforce_eager: bool = False
    calibration: str | None = None
    kv_cache_mb: Annotated[float, Field(ge=0)] | None = None
    prefix_cache_mb: Annotated[float, Field(ge=0)] | None = None

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8012
    api_keys: tuple[str, ...] = Field((), alias="api_key")
    metrics_key: str | None = None
    served_names: tuple[Alias, ...] = Field((), alias="served_model_name")
    temperature: Annotated[float, Field(ge=0, le=100)] = 1.0
    strict_openai: bool = False
    cors_origins: tuple[str, ...] = Field((), alias="cors_origin")

    max_sessions: Annotated[int, Field(ge=1)] = 32
    max_waiting: Annotated[int, Field(ge=0)] = 128
    max_body_mb: Annotated[float, Field(ge=0.001, le=4096)] = 8.0
    arriving_mb: Annotated[float, Field(gt=0)] | None = None
    max_context_tokens: Annotated[int, Field(ge=2)] | None = None
    body_seconds: Positive = 30.0
    request_seconds: Positive | None = None
    send_seconds: Positive = 60.0
    document_mb: Annotated[float, Field(ge=0)] = 64.0

    batch_folder: Path | None = Field(None, alias="batch_dir")
    max_file_mb: Annotated[float, Field(gt=0)] = 210.0

    heartbeat_seconds: Positive = 15.0
    smooth_stream_ms: Annotated[float, Field(ge=0, le=10_000)] = 0.0

    grace_seconds: Annotated[float, Field(ge=0)] = 10.0
    otlp_endpoint: Annotated[str, Field(pattern="^https?://")] | None = None
    log_format: LogFormat = "text"
    log_level: LogLevel = "info"

    @field_validator("api_keys", "served_names", "cors_origins", mode="before")
    @classmethod
    def _one_or_more(cls, value: Any) -> Any:
        """A single one may stand without a list."""
        return (value,) if isinstance(value, str | dict) else value

    @field_validator("api_keys")
    @classmethod
    def _keys_can_be_sent(cls, keys: tuple[str, ...]) -> tuple[str, ...]:
        if any(not key.strip() or key != key.strip() or not key.isascii() for key in keys):
            raise ValueError("a key is empty, begins or ends with a space, or has letters that no header can carry")
        return keys

    @field_validator("arriving_mb")
    @classmethod
    def _one_body_fits(cls, megabytes: float | None, info: ValidationInfo) -> float | None:
        largest = info.data.get("max_body_mb", 0.0)
        if megabytes is not None and megabytes < largest:
            raise ValueError(f"one body may have {largest:g} MB; give as much or more, or lower max_body_mb")
        return megabytes

    @field_validator("served_names")
    @classmethod
    def _names_differ(cls, names: tuple[Alias, ...]) -> tuple[Alias, ...]:
        if len({alias.name for alias in names}) < len(names):
            raise ValueError("the same name is there twice")
        return names

    @property
    def max_body_bytes(self) -> int:
        """Largest request body."""
        return int(self.max_body_mb * 1_000_000)

    @property
    def arriving_bytes(self) -> int:
        """Memory for all bodies that are arriving."""
        return self.max_body_bytes * 8 if self.arriving_mb is None else int(self.arriving_mb * 1_000_000)

    @property
    def max_file_bytes(self) -> int:
        """Largest file."""
        return int(self.max_file_mb * 1_000_000)

    @property
    def document_bytes(self) -> int:
        """Memory for each key's documents."""
        return int(self.document_mb * 1_000_000)

"""What an operator can decide about the service."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Settings:
    """The service's settings; the model itself comes as a loaded engine.

    Attributes:
        host: address to listen on.
        port: TCP port; 0 takes a free one.
        served_names: what clients may call the model, the first where they name none; empty means the
            engine's own name.
        api_keys: keys of which one is needed; empty means none is.
        cors_origins: web origins whose pages may call the service; ``*`` for all.
        temperature: used when a request names none. OpenAI's default is 1; 0 suits edits.
        max_sessions: answers generated at the same time.
        max_waiting: answers that may wait for their turn; beyond that a request gets 429.
        batch_folder: where files and batches are kept; None offers neither.
        max_file_bytes: largest file.
        max_body_bytes: largest request body.
        body_seconds: longest time a body may take to arrive.
        document_bytes: memory for the texts of each key's edits, so that the next edit need not send them again.
        heartbeat_seconds: a stream with nothing to say sends a comment this often, so that proxies keep it.
        grace_seconds: at shutdown, how long running answers may take to complete.
    """

    host: str = "127.0.0.1"
    port: int = 8012
    served_names: tuple[str, ...] = ()
    api_keys: tuple[str, ...] = ()
    cors_origins: tuple[str, ...] = ()
    temperature: float = 1.0
    max_sessions: int = 32
    max_waiting: int = 128
    batch_folder: Path | None = None
    max_file_bytes: int = 200 << 20
    max_body_bytes: int = 8 << 20
    body_seconds: float = 30.0
    document_bytes: int = 64 << 20
    heartbeat_seconds: float = 15.0
    grace_seconds: float = 10.0

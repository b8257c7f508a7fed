"""Bodies that arrive at the same time: what all take is bounded, and is free again whatever becomes of them."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from lookup_server.configuration import load_settings
from lookup_server.settings import Settings

from lookup_spec.errors import LookupSpecError
from lookup_spec.model.load import LoadedModel
from lookup_spec.pipeline.engine import Engine
from tests.server.test_leaving import connect
from tests.server.tiny_service import Running, running, until

SHORT = {"prompt": "def", "max_tokens": 1}
LONG = {"prompt": "def " * 50_000}  # 200 kB, refused when it is there: no context holds it


@pytest.fixture(scope="module")
def narrow(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Room for 0.3 MB."""
    settings = Settings(
        max_body_mb=0.3, arriving_mb=0.3, max_file_mb=0.3, batch_folder=tmp_path_factory.mktemp("batches")
    )
    with running(engine, settings) as one:
        yield one


def taken(service: Running) -> int:
    return service.service.intake.taken


def post(service: Running, body: object, path: str = "/v1/completions") -> httpx.Response:
    return httpx.post(f"{service.url}{path}", json=body, timeout=120, trust_env=False)


@contextmanager
def arriving(service: Running, there: bytes, length: int = 290_000) -> Iterator[socket.socket]:
    """A body of which no more than a part comes."""
    with connect(service) as sock:
        sock.sendall(b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % length + there)
        yield sock


def test_bodies_that_find_no_room_are_told_to_come_back(narrow: Running) -> None:
    """Short ones always find some; and once there is room again, so do long ones."""
    with arriving(narrow, b" " * 250_000):
        until(lambda: taken(narrow) >= 180_000)
        refused = post(narrow, LONG)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        assert refused.json()["error"]["code"] == "overloaded"
        assert post(narrow, SHORT).status_code == 200
    until(lambda: taken(narrow) == 0)
    assert post(narrow, LONG).json()["error"]["code"] == "context_length_exceeded"


def test_a_length_that_is_promised_takes_no_room_before_it_is_there(narrow: Running) -> None:
    """Or whoever promises and sends nothing would keep others out."""
    with arriving(narrow, b"", 300_000), arriving(narrow, b"", 300_000):
        assert post(narrow, LONG).json()["error"]["code"] == "context_length_exceeded"


@pytest.mark.parametrize(
    ("there", "status"),
    [
        (b"{" + b" " * 289_999, b" 400 "),
        (b'{"prompt": 5, "max_tokens": "' + b" " * 289_969 + b'"}', b" 400 "),
        (b'{"segments": "' + b" " * 289_984 + b'"}', b" 400 "),
        (b'{"prompt": "x", "max_tokens": 1' + b" " * 289_968 + b"}", b" 200 "),
        (b" " * 200_000, None),
    ],
    ids=["no JSON", "wrong", "Tabby's, wrong", "answered", "its client goes"],
)
def test_room_is_free_again(narrow: Running, there: bytes, status: bytes | None) -> None:
    with arriving(narrow, there) as sock:
        if status is None:
            until(lambda: taken(narrow) > 0)
        else:
            assert status in sock.recv(4096)
            assert taken(narrow) == 0
    until(lambda: taken(narrow) == 0)


def test_room_is_free_again_when_a_body_is_late(loaded: LoadedModel) -> None:
    with running(Engine(loaded), Settings(body_seconds=0.2)) as service, arriving(service, b" " * 200_000) as sock:
        until(lambda: taken(service) > 0)
        assert b" 408 " in sock.recv(4096)
        assert taken(service) == 0


def test_a_file_takes_room_for_what_is_in_memory(loaded: LoadedModel, tmp_path: Path) -> None:
    """The rest of it is on disk; and one that never comes is waited for as long as its size allows, no longer."""
    settings = Settings(
        max_body_mb=1, arriving_mb=1.5, max_file_mb=2, body_seconds=1.5, batch_folder=tmp_path / "batches"
    )
    head = (
        b"POST /v1/files HTTP/1.1\r\nhost: x\r\ncontent-length: 900000\r\ncontent-type: multipart/form-data; boundary=b"
    )
    part = b'--b\r\ncontent-disposition: form-data; name="file"; filename="f"\r\n\r\n'
    with running(Engine(loaded), settings) as service:
        with connect(service) as sock:
            sock.sendall(head + b"\r\n\r\n" + part)
            until(lambda: taken(service) == 1 << 20)
            upload = httpx.post(
                f"{service.url}/v1/files",
                data={"purpose": "batch"},
                files={"file": ("f", b"x")},
                timeout=120,
                trust_env=False,
            )
            assert upload.status_code == 429
            answer = b""
            while block := sock.recv(4096):
                answer += block
            assert b" 408 " in answer
            assert b"within 3 seconds" in answer
        until(lambda: taken(service) == 0)
        assert post(service, SHORT).status_code == 200


def test_room_for_less_than_one_body_is_refused_at_the_start() -> None:
    """Else such a body would be told to come back for ever."""
    assert Settings(max_body_mb=3).arriving_bytes == 24_000_000
    with pytest.raises(LookupSpecError, match=r"^--arriving-mb is 2.*one body may have 8 MB"):
        load_settings({"arriving_mb": 2.0}, {})

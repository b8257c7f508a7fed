"""A service that answers with the recordings in ``editors/fixtures``, for the tests of editors' clients."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path, PurePosixPath
from typing import Any

FOLDER = Path(__file__).parents[2] / "editors" / "fixtures"
RECORDINGS: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))
}


class Replay(ThreadingHTTPServer):
    """Answers an edit of ``…/NAME.py`` with the recording ``NAME``, if the document is that of the recording.

    Attributes:
        bodies: what was sent to each path.
        delay: seconds before each event.
        fill: what ``/infill`` says; None if the model cannot.
        gone: edits whose client went away before the end.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bodies: list[tuple[str, dict[str, Any]]] = []
        self.delay = 0.0
        self.fill: str | None = "a + b"
        self.gone = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Replay

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.bodies.append((self.path, body))
        if self.path == "/v1/edits":
            self._edit(body)
        elif self.path == "/infill" and self.server.fill is not None:
            time.sleep(self.server.delay)
            self._json(200, {"content": self.server.fill})
        else:
            self._json(501, {"error": {"message": "This service cannot do that."}})

    def do_DELETE(self) -> None:
        self._json(200, {})

    def _edit(self, body: dict[str, Any]) -> None:
        recording = RECORDINGS[PurePosixPath(body["document"]["uri"]).stem]
        if body["document"]["text"] != recording["base"] or body.get("range") != recording["request"].get("range"):
            self._json(400, {"error": {"message": f"That is not the recorded document: {body['document']['text']!r}"}})
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        try:
            for event in recording["events"]:
                time.sleep(self.server.delay)
                data = f": hb\n\ndata: {json.dumps({**event, 'uri': body['document']['uri']})}\n\n".encode()
                # Cut anywhere, as networks do.
                for part in (data[: len(data) // 3], data[len(data) // 3 :]):
                    self.wfile.write(part)
                    self.wfile.flush()
        except OSError:
            self.server.gone += 1

    def _json(self, status: int, value: Any) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@contextmanager
def replay() -> Iterator[Replay]:
    """A running one."""
    server = Replay()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

"""A plain client of a language server: messages over its pipes, and an editor's memory of documents."""

from __future__ import annotations

import json
import os
import queue
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_UNITS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}

Json = dict[str, Any]


class Client:
    """Starts the server and speaks to it; applies the edits that it asks for, unless they are of another version.

    Args:
        url: of the service.
        encoding: what positions count; the only one that this client knows.
        capabilities: besides those that all tests want.
    """

    def __init__(self, url: str, encoding: str = "utf-16") -> None:
        paths = os.pathsep.join(str(ROOT / part) for part in ("", "server", "bench"))
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from lookup_spec.cli import main; main()", "lsp", "--url", url],
            env={**os.environ, "PYTHONPATH": paths},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.encoding = encoding
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.edits: list[Json] = []
        self.progress: list[Json] = []
        self._ids = 0
        self._answers: dict[int, queue.SimpleQueue[Json]] = {}
        threading.Thread(target=self._read, daemon=True).start()
        capabilities = {
            "general": {"positionEncodings": [encoding]},
            "window": {"workDoneProgress": True},
            "workspace": {"applyEdit": True, "workspaceEdit": {"documentChanges": True}},
        }
        params = {"processId": os.getpid(), "rootUri": None, "capabilities": capabilities}
        try:
            self.server: Json = self.ask("initialize", params)["result"]["capabilities"]
        except KeyError:
            self.__exit__()
            raise
        self.tell("initialized", {})

    def close(self) -> int:
        """Ends the server as the protocol has it; its exit code."""
        self.ask("shutdown", None)
        self.tell("exit", None)
        return self._process.wait(20)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def ask(self, method: str, params: Any) -> Json:
        """A request's answer, with ``result`` or ``error``."""
        return self.answer(self.begin(method, params))

    def begin(self, method: str, params: Any) -> int:
        self._ids += 1
        self._answers[self._ids] = queue.SimpleQueue()
        self._send({"id": self._ids, "method": method, "params": params})
        return self._ids

    def answer(self, number: int) -> Json:
        return self._answers[number].get(timeout=60)

    def tell(self, method: str, params: Any) -> None:
        self._send({"method": method, "params": params})

    def open(self, uri: str, text: str) -> None:
        self.texts[uri], self.versions[uri] = text, 1
        item = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self.tell("textDocument/didOpen", {"textDocument": item})

    def change(self, uri: str, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        """The user types something."""
        place = {"start": position(*start), "end": position(*end)}
        self.texts[uri] = apply(self.texts[uri], [{"range": place, "newText": text}], self.encoding)
        self.versions[uri] += 1
        named = {"uri": uri, "version": self.versions[uri]}
        self.tell("textDocument/didChange", {"textDocument": named, "contentChanges": [{"range": place, "text": text}]})

    def edit(self, **argument: Any) -> Json:
        return self.ask("workspace/executeCommand", {"command": "lookup-spec.edit", "arguments": [argument]})

    def _send(self, message: Json) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(data), data))
        self._process.stdin.flush()

    def _read(self) -> None:
        out = self._process.stdout
        assert out is not None
        while (head := out.readline()).startswith(b"Content-Length: "):
            while out.readline() != b"\r\n":
                pass
            message = json.loads(out.read(int(head.split()[1])))
            if "method" not in message:
                self._answers[message["id"]].put(message)
            elif message["method"] == "$/progress":
                self.progress.append(message["params"])
            elif "id" in message:
                self._send({"id": message["id"], "result": self._asked(message["method"], message["params"])})
        for waiting in self._answers.values():
            waiting.put({"error": {"code": 0, "message": "the server has ended"}})

    def _asked(self, method: str, params: Json) -> Any:
        if method != "workspace/applyEdit":
            return None
        self.edits.append(params["edit"])
        for one in params["edit"]["documentChanges"]:
            uri, version = one["textDocument"]["uri"], one["textDocument"]["version"]
            if version != self.versions[uri]:
                return {"applied": False, "failureReason": "another version"}
            self.texts[uri] = apply(self.texts[uri], one["edits"], self.encoding)
            self.versions[uri] += 1
        return {"applied": True}


def position(line: int, character: int) -> Json:
    return {"line": line, "character": character}


def apply(text: str, edits: list[Json], encoding: str) -> str:
    """A text after edits, all of which count in the text before."""
    codec, size = _UNITS[encoding]
    lines = _LINE.findall(text)

    def offset(place: Json) -> int:
        if place["line"] >= len(lines):
            assert (place["line"], place["character"]) == (len(lines), 0), "beyond the end"
            assert not lines or lines[-1][-1] in "\r\n", "there is no such line"
            return len(text)
        line = lines[place["line"]].rstrip("\r\n").encode(codec)
        assert place["character"] * size <= len(line), "beyond the end of the line"
        before = line[: place["character"] * size].decode(codec)
        return sum(map(len, lines[: place["line"]])) + len(before)

    for edit in sorted(edits, key=lambda edit: offset(edit["range"]["start"]), reverse=True):
        start, end = offset(edit["range"]["start"]), offset(edit["range"]["end"])
        text = text[:start] + edit["newText"] + text[end:]
    return text

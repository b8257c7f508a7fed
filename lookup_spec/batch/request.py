"""What a line of input asks for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, BinaryIO

from lookup_spec.batch.lines import Line, read_lines

_MAX_ID = 512  # characters


@dataclass(frozen=True)
class Request:
    """One request of a job.

    Attributes:
        line: where it stands in the input, from 1.
        custom_id: its name, different from those of all other requests of the job.
        url: what to call, such as ``/v1/chat/completions``.
        body: what to send there.
        problem: why it can never be answered; empty if nothing is known against it.
        kept: what steps towards its answer have brought in earlier runs, by the digest of what they asked.
    """

    line: int
    custom_id: str
    url: str
    body: dict[str, Any]
    problem: str = ""
    kept: Mapping[str, dict[str, Any]] = field(default_factory=dict, compare=False)

    @cached_property
    def digest(self) -> str:
        """32 hexadecimal digits that change with everything that is asked, but for the line."""
        asked = json.dumps([self.custom_id, self.url, self.body, self.problem], sort_keys=True)
        return hashlib.blake2b(asked.encode(), digest_size=16).hexdigest()

    def seed(self, job: int) -> int:
        """A seed for a request that names none: the same whenever and wherever it is answered.

        Args:
            job: the job's own seed.
        """
        return int.from_bytes(hashlib.blake2b(f"{job} {self.digest}".encode(), digest_size=8).digest(), "big")


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is no request, or not one of its own.

    Attributes:
        line: from 1.
        digest: 32 hexadecimal digits that change with the line's text and place.
        code: a word for programs.
        message: a sentence for people.
    """

    line: int
    digest: str
    code: str
    message: str

    @classmethod
    def of(cls, line: Line, code: str, reason: str) -> BadLine:
        """Says about a line what is wrong with it."""
        digest = hashlib.blake2b(b"%d %s" % (line.number, line.data), digest_size=16).hexdigest()
        return cls(line.number, digest, code, f"Line {line.number} {reason}")


class Lines:
    """The requests of a file with one on each line.

    Args:
        file: it can be read again and again.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def count(self) -> int:
        """How many lines there are that are not blank."""
        self._file.seek(0)
        return sum(1 for _ in read_lines(self._file))

    def requests(self) -> Iterator[Request | BadLine]:
        """What each of them holds."""
        self._file.seek(0)
        return map(parse, read_lines(self._file))


def parse(line: Line) -> Request | BadLine:
    """The request that a line holds."""
    value = _value(line)
    return value if isinstance(value, BadLine) else _request(line, value)


def _value(line: Line) -> Any:
    """The line's JSON, or what is wrong with it."""
    if not line.whole:
        return BadLine.of(line, "line_too_long", f"has more than {len(line.data) - 1} bytes; shorten it.")
    try:
        return json.loads(line.data.decode())
    except UnicodeDecodeError as error:
        return BadLine.of(line, "invalid_json", f"is not UTF-8 (byte {error.start}).")
    except json.JSONDecodeError as error:  # what it says of lines is about this one alone
        return BadLine.of(line, "invalid_json", f"is not JSON ({error.msg}, at character {error.pos + 1}).")
    except (ValueError, RecursionError) as error:
        return BadLine.of(line, "invalid_json", f"is not JSON ({error}).")


def _request(line: Line, value: Any) -> Request | BadLine:
    if not isinstance(value, dict):
        return BadLine.of(line, "invalid_line", "is not a JSON object; give custom_id, method, url and body.")
    custom_id, url, body = value.get("custom_id"), value.get("url"), value.get("body")
    if not isinstance(custom_id, str) or not 0 < len(custom_id) <= _MAX_ID or not _is_text(custom_id):
        return BadLine.of(line, "invalid_custom_id", f"has no custom_id; give a text of 1 to {_MAX_ID} characters.")
    if value.get("method", "POST") != "POST":
        problem = "The method is not POST."
    elif not isinstance(url, str):
        problem = "There is no url; give /v1/chat/completions or /v1/completions."
    elif not isinstance(body, dict):
        problem = "There is no body; give a JSON object, as for the url."
    else:
        return Request(line.number, custom_id, url, body)
    return Request(line.number, custom_id, "", {}, problem)


def _is_text(value: str) -> bool:
    """Whether it has no halves of characters in it, which JSON can hold but no file."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True

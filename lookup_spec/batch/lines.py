"""The lines of a file, one at a time, however large the file is."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

MAX_LINE = 16 << 20
"""Most bytes of a line."""


class Line(NamedTuple):
    """A line that is not blank.

    Attributes:
        number: from 1.
        data: its bytes, without line end and byte-order mark; only the beginning if it is too long.
        whole: false if it is too long.
    """

    number: int
    data: bytes
    whole: bool = True


def read_lines(file: BinaryIO, max_bytes: int = MAX_LINE) -> Iterator[Line]:
    """The lines that are not blank. Line ends may be LF or CRLF, and the last one may be missing.

    Args:
        file: at its start.
        max_bytes: most bytes of a line; of longer ones no more than that is held in memory.
    """
    number = 0
    while data := file.readline(max_bytes + 1):
        number += 1
        whole = data.endswith(b"\n") or len(data) <= max_bytes
        rest = data
        while rest and not rest.endswith(b"\n"):
            rest = file.readline(1 << 20)
        if number == 1:
            data = data.removeprefix(codecs.BOM_UTF8)
        data = data.rstrip(b"\r\n")
        if data.strip():
            yield Line(number, data, whole)

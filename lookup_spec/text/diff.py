"""Two versions of a text as a unified diff."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import unified_diff


def diff_lines(old: str, new: str, path: str = "file", context: int = 3) -> Iterator[str]:
    """The lines of a unified diff, each with its newline; none if the texts are equal.

    Only ``\\n`` separates lines, so that carriage returns and form feeds show as part of them.

    Args:
        old, new: both versions.
        path: shown in the header.
        context: unchanged lines around a change.
    """
    lines = unified_diff(_lines(old), _lines(new), f"a/{path}", f"b/{path}", n=context)
    for line in lines:
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _lines(text: str) -> list[str]:
    *ended, last = text.split("\n")
    return [*(f"{line}\n" for line in ended), *([last] if last else [])]

"""The end of a block in a stream."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup_spec.text.indent import IndentGuard


def guarded(pieces: list[str], least: int) -> str:
    guard = IndentGuard(least)
    return "".join([*map(guard.push, pieces), guard.flush() if not guard.ended else ""])


def slowly(text: str, least: int) -> str:
    """Line by line, over the whole text."""
    kept: list[str] = []
    for number, line in enumerate(text.split("\n")):
        if number and line.strip(" \t\r") and len(line) - len(line.lstrip(" \t")) < least:
            while kept and number and not kept[-1].strip(" \t\r") and len(kept) > 1:
                kept.pop()
            return "\n".join(kept).removesuffix("\r")
        kept.append(line)
    return "\n".join(kept)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("urn a\n    b\nc", "urn a\n    b"),
        ("a\n\n  \n    b\n\nc", "a\n\n  \n    b"),
        ("a\n\tb\n", "a"),
        ("a\r\n    b\r\nc", "a\r\n    b"),
        ("a\n    ", "a\n    "),
        ("a\n\n", "a\n\n"),
    ],
)
def test_the_first_line_indented_too_little_ends_the_text(text: str, kept: str) -> None:
    assert guarded([text], 4) == kept == guarded(list(text), 4)


@given(st.lists(st.text("a \t\n", max_size=6), max_size=6), st.integers(0, 3))
def test_the_end_does_not_depend_on_the_pieces(pieces: list[str], least: int) -> None:
    text = "".join(pieces)
    assert guarded(pieces, least) == guarded([text], least) == (slowly(text, least) if least else text)

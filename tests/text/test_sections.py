"""Where prose is cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lookup_spec.text.sections import divisions, sections

MARKDOWN = "# One\n\nfirst words\nof a text\n\n## Two\n\nmore words\n\n# Three\n\nlast words\n"
PLAIN = "Title\n=====\n\nsome words\n\n1. Scope\n\nwords\n\n1.1 Terms\n\nwords\n\nNO WARRANTY\n\nwords words\n"


def heads(text: str, size: int, path: str = "") -> list[str]:
    return [text[start:end].split("\n", maxsplit=1)[0] for start, end in divisions(text, path).split(size)]


def test_sections_are_found_in_markdown_and_in_plain_text() -> None:
    assert [
        (MARKDOWN[part.start : part.end].split("\n", maxsplit=1)[0], part.depth)
        for part in sections(MARKDOWN).definitions
    ] == [
        ("# One", 0),
        ("## Two", 1),
        ("# Three", 0),
    ]
    assert [PLAIN[part.start : part.end].split("\n", maxsplit=1)[0] for part in sections(PLAIN).definitions] == [
        "Title",
        "1. Scope",
        "1.1 Terms",
        "NO WARRANTY",
    ]


def test_a_text_is_cut_before_its_greatest_sections_then_paragraphs_then_lines() -> None:
    assert heads(MARKDOWN, 60) == ["# One", "# Three"]
    assert heads(MARKDOWN, 35) == ["# One", "## Two", "# Three"]
    assert heads("one\ntwo\n\nthree\nfour\n", 15) == ["one", "three"]
    assert heads("one\ntwo\nthree\n", 8) == ["one", "three"]


def test_a_program_is_cut_before_its_functions() -> None:
    code = "import a\n\n\ndef one():\n\n    return 1\n\n\ndef two():\n\n    return 2\n"
    assert heads(code, 45, "x.py") == ["import a", "def two():"]


@given(st.text(st.sampled_from("aB1.# =-\n"), max_size=60), st.integers(1, 40))
def test_the_parts_are_the_text(text: str, size: int) -> None:
    """Whatever it looks like, and none is longer than asked."""
    stretches = sections(text).split(size)
    assert "".join(text[start:end] for start, end in stretches) == text
    assert all(0 < end - start <= size for start, end in stretches)

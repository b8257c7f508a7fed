"""Where prose may be cut: its sections and paragraphs."""

from __future__ import annotations

import re
from itertools import pairwise

from lookup_spec.text.document import Document
from lookup_spec.text.languages import language_of
from lookup_spec.text.syntax import Part, Syntax

_HEADING = re.compile(
    r"^(?:(?P<marks>#{1,6})[ \t]+\S.*"  # Markdown
    r"|(?P<numbers>\d+(?:\.\d+)*)[.)]?[ \t]+[A-Z].{0,80}"  # 1.2 Numbered
    r"|(?=\S)(?P<capitals>(?:[A-Z0-9'’,.:()/&-]+[ \t]?){1,12})"  # IN CAPITALS
    r"|(?P<under>\S.*)\n(?P<line>={3,}|-{3,}))[ \t]*$",  # underlined
    re.MULTILINE,
)
_PARAGRAPH = re.compile(r"(?:\A|\n[ \t]*\n)\s*?(?=[ \t]*\S)")


def divisions(text: str, path: str = "") -> Syntax:
    """The places at which a text is best cut: those of its syntax, if it is a program, else sections and paragraphs.

    Args:
        text: any text.
        path: its name, if it has one; the suffix tells the language.
    """
    syntax = Document(text, language_of(path)).syntax
    return syntax if syntax.definitions or syntax.statements else sections(text)


def sections(text: str) -> Syntax:
    """A text's sections in the place of definitions, its paragraphs in that of statements."""
    headings = [(found.start(), depth) for found in _HEADING.finditer(text) if (depth := _depth(found)) is not None]
    parts = []
    for n, (start, depth) in enumerate(headings):
        end = next((other for other, level in headings[n + 1 :] if level <= depth), len(text))
        parts.append(Part(start, end, depth))
    starts = [found.end() for found in _PARAGRAPH.finditer(text)]
    paragraphs = tuple(Part(start, end, 0) for start, end in pairwise([*starts, len(text)]))
    return Syntax(text, "", bytes(len(text)), tuple(parts), paragraphs)


def _depth(heading: re.Match[str]) -> int | None:
    """How deep a heading's section lies; None if it only looks like a heading."""
    if heading["marks"]:
        return len(heading["marks"]) - 1
    if heading["numbers"]:
        return heading["numbers"].count(".") + 1
    if heading["line"]:
        return 0 if heading["line"].startswith("=") else 1
    return 1 if sum(map(str.isalpha, heading[0])) >= 4 else None

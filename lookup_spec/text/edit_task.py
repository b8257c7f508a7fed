"""What is to be done to which file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TypeAlias

from lookup_spec.text.fences import fence_for
from lookup_spec.text.languages import Language, language_named, language_of

_NAMES = {"kt": "kotlin", "md": "markdown", "yml": "yaml", "plaintext": "text"}
_DOCUMENTS = ("markdown", "mdx", "rst", "txt", "adoc", "org")

Lines: TypeAlias = tuple[int, int]
"""The lines ``start:end``, counted from 0."""


@dataclass(frozen=True, slots=True)
class File:
    """A file as the prompt shows it.

    Attributes:
        lines: each ended by ``\\n`` alone, the last maybe not.
        path: its name, shown to the model; may be empty.
        language: as editors call it; if empty, the name decides.
    """

    lines: tuple[str, ...]
    path: str = ""
    language: str = ""

    @property
    def known_language(self) -> Language | None:
        """The file's language, if it is one that can be parsed."""
        return language_named(self.language) if self.language else language_of(self.path)

    @property
    def tag(self) -> str:
        """What to write behind the opening fence; empty if nothing tells the language."""
        known = self.known_language
        if known is not None:
            return known.name
        suffix = PurePosixPath(self.path.replace("\\", "/")).suffix[1:]
        name = (self.language or suffix).lower()
        return _NAMES.get(name, name if re.fullmatch(r"[a-z0-9+#]{1,16}", name) else "")

    def fence(self, other: str = "") -> str:
        """A fence around the file, longer than any run of backticks in it or in another text; documents, to which
        blocks get added, have at least four."""
        return fence_for("".join(self.lines) + other, 4 if self.tag in _DOCUMENTS else 3)


@dataclass(frozen=True, slots=True)
class Instruction:
    """Change something, as the text says in plain words."""

    text: str


@dataclass(frozen=True, slots=True)
class Update:
    """Merge a snippet into the file.

    Attributes:
        snippet: the changed code; comments like ``... existing code ...`` stand for what stays.
        text: what it is about, in plain words; may be empty.
    """

    snippet: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class NextEdit:
    """Make the change that comes next.

    Attributes:
        history: the latest changes as unified diffs, oldest first.
        cursor: where the user is: the line, and how many of its characters stand before.
    """

    history: tuple[str, ...]
    cursor: tuple[int, int] | None = None


Task: TypeAlias = Instruction | Update | NextEdit

"""Changes that go through a whole text: what each makes of a part of it."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from operator import itemgetter
from typing import NamedTuple, Protocol

from lookup_spec.propose.guess import Kind

_INDENTATION = re.compile(r"^[ \t]*(?=\S)", re.MULTILINE)
_MARKS = re.compile(r"[()\[\]{}\n]")


class Reach(IntEnum):
    """How a place of a change relates to those where it is known to go on; each is counted by itself."""

    NAME = 0
    """The very name."""
    OTHER_CASE = 1
    """The name's words in other letter case."""
    PART = 2
    """The name's words as a part of a longer name."""
    STYLE = 3
    """A name in the style that is given up."""
    INSIDE = 4
    """A line that is indented at least as deep as the first one that was."""
    OUTSIDE = 5
    """A line that is indented less."""
    LIKE = 6
    """The same text replaced in a line that begins with the same word."""
    UNLIKE = 7
    """… in a line that begins otherwise."""


class Change(Protocol, Hashable):
    """A rule that changes text. Equal rules are the same change."""

    @property
    def kind(self) -> Kind:
        """What its places are accounted to."""

    def edits(self, text: str) -> Sequence[Edit]:
        """What changes in some lines, disjoint and ascending."""


class Edit(NamedTuple):
    """``text[start:end]`` becomes ``new``.

    Attributes:
        start: of what is replaced.
        end: of what is replaced.
        new: what stands there instead.
        change: the reason.
        reach: what kind of place this is for it.
    """

    start: int
    end: int
    new: str
    change: Change
    reach: Reach


@dataclass(frozen=True, slots=True)
class Indent:
    """Lines are indented otherwise: ``old`` becomes ``new``, other indentations change likewise.

    Attributes:
        old: an indentation in the base.
        new: the same in the answer.
        scaled: others grow or shrink in proportion, not by the same amount.
    """

    old: str
    new: str
    scaled: bool = False

    @property
    def kind(self) -> Kind:
        return Kind.INDENTED

    def edits(self, text: str) -> list[Edit]:
        found = []
        for match in _INDENTATION.finditer(text):
            new = self._applied(match[0])
            if new is not None and new != match[0]:
                reach = Reach.OUTSIDE if len(match[0]) < len(self.old) else Reach.INSIDE
                found.append(Edit(*match.span(), new, self, reach))
        return found

    def after(self, earlier: Indent | None) -> Indent:
        """The same, if another indentation was seen to change before."""
        if (
            earlier is None
            or earlier.old == self.old
            or len(earlier.old) * len(self.new) != len(earlier.new) * len(self.old)
        ):
            return self
        return Indent(self.old, self.new, scaled=True)

    def covers(self, other: Indent) -> bool:
        """Whether this tells as much."""
        return self._applied(other.old) == other.new

    def _applied(self, indentation: str) -> str | None:
        old, new = self.old, self.new
        if new.endswith(old) and not self.scaled:
            return new[: len(new) - len(old)] + indentation
        if old.endswith(new) and not self.scaled:
            lost = old[: len(old) - len(new)]
            return indentation[len(lost) :] if indentation.startswith(lost) else None
        # Another unit: as many new ones as there were old ones.
        if len(set(old)) != 1 or len(set(new)) != 1 or set(indentation) != set(old):
            return None
        units, rest = divmod(len(indentation) * len(new), len(old))
        if rest and new[0] != "\t":
            return None
        # What aligns a line with the one before stays spaces behind tabs.
        return new[0] * units + old[0] * (rest // len(new))


@dataclass(frozen=True, slots=True)
class Replacement:
    """``old`` becomes ``new`` wherever it stands between ``left`` and ``right``.

    Attributes:
        old: at least one character.
        new: what stands there instead; for something inserted, with ``old`` in it.
        left: a regular expression of fixed width.
        right: a regular expression.
        head: the first word of the line where this was seen; or None if it was asked for.
    """

    old: str
    new: str
    left: str = ""
    right: str = ""
    head: str | None = None

    @property
    def kind(self) -> Kind:
        return Kind.REPLACED

    def edits(self, text: str) -> list[Edit]:
        matches = _between(self.left, self.old, self.right).finditer(text)
        return [Edit(*match.span(), self.new, self, self._reach(text, match.start())) for match in matches]

    def _reach(self, text: str, place: int) -> Reach:
        if self.head is None or first_word(text[text.rfind("\n", 0, place) + 1 : place + 40]) == self.head:
            return Reach.LIKE
        return Reach.UNLIKE


@cache
def _between(left: str, old: str, right: str) -> re.Pattern[str]:
    text = re.escape(old)
    # Looked at last, what stands before does not slow the search down.
    before = rf"(?<={left}{text})" + (rf"(?<!\w{text})" if in_word(old[0]) else "")
    behind = r"(?!\w)" if in_word(old[-1]) else ""
    return re.compile(rf"{text}{before}{behind}(?={right})")


def first_word(line: str) -> str:
    """The first word of a line, or what stands there instead."""
    found = re.search(r"\w+|\S", line)
    return found[0] if found else ""


@dataclass(frozen=True, slots=True)
class Argument:
    """Calls and definitions of ``name`` get one more argument, as the first or the last one."""

    name: str
    text: str
    first: bool

    @property
    def kind(self) -> Kind:
        return Kind.REPLACED

    def edits(self, text: str) -> list[Edit]:
        if self.name not in text:
            return []
        return [
            Edit(place, place, new, self, Reach.LIKE)
            for start, end in sorted(self._calls(text), key=itemgetter(0 if self.first else 1))
            for place, new in [self._insertion(start, end, bare=not text[start:end].strip())]
        ]

    def _insertion(self, start: int, end: int, bare: bool) -> tuple[int, str]:
        if self.first:
            return start, self.text if bare else f"{self.text}, "
        return end, self.text if bare else f", {self.text}"

    def _calls(self, text: str) -> Iterator[tuple[int, int]]:
        """Where the arguments of each call begin and end, if they stand on one line."""
        for match in re.finditer(rf"(?<!\w){re.escape(self.name)}\(", text):
            depth = 1
            for mark in _MARKS.finditer(text, match.end()):
                depth += (mark[0] in "([{") - (mark[0] in ")]}")
                if mark[0] == "\n":
                    break
                if depth == 0:
                    yield match.end(), mark.start()
                    break


def in_word(char: str) -> bool:
    """Whether a character, if there is one, can be part of a name."""
    return char.isalnum() or char == "_"

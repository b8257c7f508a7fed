"""Changes of names: one becomes another, or all take another style."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from lookup_spec.propose.change import Edit, Reach, in_word
from lookup_spec.propose.guess import Kind

NAME = re.compile(r"[^\W\d]\w*")

_SUBWORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_SNAKE = re.compile(r"(?<!\w)_*[a-z]+(?:_[a-z0-9]+)+(?!\w)")
_CAMEL = re.compile(r"(?<!\w)_*[a-z]+(?:[A-Z][a-z0-9]*)+(?!\w)")
_SHORTEST_PART = 3


@dataclass(frozen=True, slots=True)
class Rename:
    """One name becomes another, maybe in other letter case or as a part of longer names, too."""

    old: str
    new: str

    @property
    def kind(self) -> Kind:
        return Kind.RENAMED

    def edits(self, text: str) -> list[Edit]:
        pattern, forms = _forms(self.old, self.new)
        found = []
        for match in pattern.finditer(text):
            reach = self._reach(text, match)
            if reach is not None:
                found.append(Edit(*match.span(), forms[match[0]], self, reach))
        return found

    def _reach(self, text: str, match: re.Match[str]) -> Reach | None:
        name, (start, end) = match[0], match.span()
        before, behind = text[start - 1 : start], text[end : end + 1]
        if not (in_word(before) or in_word(behind)):
            return Reach.NAME if name == self.old else Reach.OTHER_CASE
        # A part of a longer name is one or several of its words.
        begins = not before.isalnum() or (name[0].isupper() and not before.isupper())
        ends = not (behind.islower() or behind.isdigit())
        return Reach.PART if begins and ends and len(name) >= _SHORTEST_PART else None


@cache
def _forms(old: str, new: str) -> tuple[re.Pattern[str], dict[str, str]]:
    """A pattern of the forms in which a name may stand, and what becomes of each."""
    forms = {old: new}
    olds, news = _subwords(old), _subwords(new)
    if len(old) >= _SHORTEST_PART and olds and news:
        for form in (_snake, _camel, _pascal, _upper):
            forms.setdefault(form(olds), form(news))
    # A pattern that begins with plain text is found much faster; what stands around it is looked at then.
    return re.compile("|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True))), forms


def _subwords(name: str) -> list[str]:
    """The words of a name, or none if it holds anything else."""
    words = _SUBWORDS.findall(name)
    return words if "".join(words) == name.replace("_", "") else []


def _snake(words: Sequence[str]) -> str:
    return "_".join(words).lower()


def _upper(words: Sequence[str]) -> str:
    return "_".join(words).upper()


def _pascal(words: Sequence[str]) -> str:
    return "".join(word.capitalize() for word in words)


def _camel(words: Sequence[str]) -> str:
    return words[0].lower() + _pascal(words[1:])


@dataclass(frozen=True, slots=True)
class Restyle:
    """Names of several words become camelCase, or, if not ``camel``, snake_case."""

    camel: bool

    @classmethod
    def of(cls, old: str, new: str) -> Restyle | None:
        """The one of which a rename is an example, if any."""
        return next((style for style in (cls(True), cls(False)) if style._styled(old) == new != old), None)

    @property
    def kind(self) -> Kind:
        return Kind.RENAMED

    def edits(self, text: str) -> list[Edit]:
        pattern = _SNAKE if self.camel else _CAMEL
        return [Edit(*match.span(), self._styled(match[0]), self, Reach.STYLE) for match in pattern.finditer(text)]

    def _styled(self, name: str) -> str:
        bare = name.lstrip("_")
        words = _subwords(bare)
        return name[: len(name) - len(bare)] + (_camel if self.camel else _snake)(words) if words else name

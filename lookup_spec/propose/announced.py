"""Changes that a message asks for."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lookup_spec.propose.change import Change, Replacement
from lookup_spec.propose.names import NAME, Rename, Restyle

_TO = r"(?:to|into|as|with|by|->|=>|→)"
_NAMES = re.compile(rf"[`'\"]?\b(?P<old>\w+)\b[`'\"]?\s+(?P<to>{_TO})\s+[`'\"]?(?P<new>\w+)\b(?!\.\w)")
_ASKED = re.compile(
    r"\b(?:renam|replac|chang|convert|switch|swap|turn|mov)(?:e|es|ed|ing|s)?\b[^.!?\n]*\Z", re.IGNORECASE
)
_CODE = re.compile(r"[`'\"_]|[a-z][A-Z]|\d")
_QUOTED = re.compile(
    rf"(?P<open>[`'\"])(?P<old>[^\n]{{1,60}}?)(?P=open)\s+{_TO}\s+(?P<close>[`'\"])(?P<new>[^\n]{{1,60}}?)(?P=close)"
)
_INSTEAD = re.compile(
    r"\buse\s+[`'\"]?(?P<new>\w[\w.]*)[`'\"]?\s+(?:instead of|in place of|rather than)\s+"
    r"[`'\"]?(?P<old>\w(?:[\w.]*\w)?)",
    re.IGNORECASE,
)
_CALL_IT = re.compile(r"[`'\"](?P<old>\w+)[`'\"][^`'\"\n]*\b(?:call|name) it\s+[`'\"]?(?P<new>\w+)", re.IGNORECASE)
_QUOTES = re.compile(r"\b(?:use|to|into|with|prefer)\s+(single|double)[- ]quot", re.IGNORECASE)
_STYLES = re.compile(r"\b(?:use|to|into|in)\s+(camel|snake)[ _]?case", re.IGNORECASE)


def announced(message: str) -> list[Change]:
    """Changes that a message may ask for.

    Understood are "rename X to Y", "replace `X` by `Y`", "X -> Y", "use Y instead of X", "`X` …, call it Y", "use
    double quotes", "to camelCase", and the like.
    """
    return list(dict.fromkeys(_found(message)))


def _found(message: str) -> Iterator[Change]:
    for match in _QUOTES.finditer(message):
        yield Replacement("'", '"') if match[1].lower() == "double" else Replacement('"', "'")
    for match in _STYLES.finditer(message):
        yield Restyle(camel=match[1].lower() == "camel")
    # What was asked for so is no name.
    rest = _STYLES.sub("", _QUOTES.sub("", message))
    for form in (_NAMES, _QUOTED, _INSTEAD, _CALL_IT):
        for match in form.finditer(rest):
            old, new = match["old"], match["new"]
            if old == new or (form is _NAMES and not _names_meant(match)):
                continue
            if NAME.fullmatch(old) and NAME.fullmatch(new):
                yield Rename(old, new)
            elif form is not _NAMES and re.search(r"[^\W\d]", old):
                yield Replacement(old, new)


def _names_meant(match: re.Match[str]) -> bool:
    """Whether "X to Y" speaks of names: it looks like code, or the sentence asks for such a change."""
    if match["to"] in ("->", "=>", "→") or _CODE.search(match[0]):
        return True
    return _ASKED.search(match.string, 0, match.start()) is not None

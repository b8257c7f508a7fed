"""Changes that may go on, seen at one difference between the base and the answer."""

from __future__ import annotations

import re
from typing import NamedTuple

from lookup_spec.propose.change import Argument, Change, Indent, Replacement, first_word
from lookup_spec.propose.names import NAME, Rename, Restyle

_WORD_END = re.compile(r"\w*\Z")
_WORD_START = re.compile(r"\w*")
_DOTTED = re.compile(r"\w+(?:\.\w+)*")
_QUOTES = frozenset("'\"`")
_LONGEST = 60


class Difference(NamedTuple):
    """Where the answer left the base for a few characters of a line.

    Attributes:
        head: what stands in the base before it, from the line's beginning.
        old: what stands in the base.
        new: what stands in the answer.
        tail: what stands behind it in both, as far as it came.
        rest: what stands behind that in the base, to the line's end.
    """

    head: str
    old: str
    new: str
    tail: str
    rest: str = ""


def noticed(difference: Difference) -> list[Change]:
    """The changes of which a difference may be the first place."""
    head, old, new, tail, rest = _narrowed(difference)
    start, end = _last_word(head), _first_word(tail)
    # At the end of what is known, more of a name may be to come.
    if old == new or end == tail or "\n" in old + new or len(new) > _LONGEST or len(old) > _LONGEST:
        return []
    whole_old, whole_new = start + old + end, start + new + end
    if NAME.fullmatch(whole_old) and NAME.fullmatch(whole_new):
        style = Restyle.of(whole_old, whole_new)
        return [Rename(whole_old, whole_new), *([] if style is None else [style])]
    return _replacements(head, old, new, tail + rest)


def _replacements(head: str, old: str, new: str, tail: str) -> list[Change]:
    start, end = _last_word(head), _first_word(tail)
    line = first_word(head + old + tail)
    if {old, new} <= _QUOTES:
        return [Replacement(old, new, head=line)]
    if not old.strip() and not new.strip():
        return []
    # Words are replaced as a whole.
    if start and (old[:1] + new[:1])[:1].isalnum():
        head, old, new = head[: -len(start)], start + old, start + new
    if end and (old[-1:] or new[-1:]).isalnum():
        old, new, tail = old + end, new + end, tail[len(end) :]
    if not old:
        return _insertions(head, new, tail)
    if re.search(r"\w", old):
        right = _context(tail[:1]) if NAME.fullmatch(old) else ""
        return [Replacement(old, new, right=right, head=line)]
    return [Replacement(old, new, _context(head[-1:]), _context(tail[:1]), line)]


def _insertions(head: str, new: str, tail: str) -> list[Change]:
    found: list[Change] = []
    line = first_word(head + tail)
    callee = _callee(head)
    if callee and tail.startswith(")") and (new.startswith(",") or head.endswith("(")):
        found.append(Argument(callee, new.lstrip(", "), first=False))
    elif callee and head.endswith("("):
        found.append(Argument(callee, new.rstrip(", "), first=True))
    # What is inserted goes with the name behind or the word before it.
    elif name := _DOTTED.match(tail):
        right = _context(tail[name.end() : name.end() + 1])
        found.append(Replacement(name[0], new + name[0], _context(head[-1:]), right, line))
    elif head:
        word = _last_word(head) or head[-1]
        found.append(Replacement(word, word + new, right=_context(tail[:1]), head=line))
    return found


def _callee(head: str) -> str:
    """The name before the innermost bracket that is open at the end of a text, if that is a round one."""
    depth = 0
    for place in range(len(head) - 1, -1, -1):
        depth += (head[place] in ")]}") - (head[place] in "([{")
        if depth < 0:
            return _last_word(head[:place]) if head[place] == "(" else ""
    return ""


def _context(char: str) -> str:
    """What stands for a character at the edge of a change: any word for a part of one."""
    return r"\w" if char.isalnum() or char == "_" else re.escape(char)


def _last_word(text: str) -> str:
    found = _WORD_END.search(text)
    return found[0] if found else ""


def _first_word(text: str) -> str:
    found = _WORD_START.match(text)
    return found[0] if found else ""


def _narrowed(difference: Difference) -> Difference:
    head, old, new, tail, rest = difference
    common = _common(old, new)
    head, old, new = head + old[:common], old[common:], new[common:]
    common = _common(old[::-1], new[::-1])
    if common:
        tail, old, new = old[len(old) - common :] + tail, old[: len(old) - common], new[: len(new) - common]
    return Difference(head, old, new, tail, rest)


def _common(one: str, other: str) -> int:
    length = 0
    for left, right in zip(one, other):  # noqa: B905 - the shorter one decides
        if left != right:
            break
        length += 1
    return length


def reindented(base: str, answer: str) -> Indent | None:
    """The indentation in which the beginnings of two lines differ, if they differ in nothing else."""
    text = base.lstrip()
    if len(text) < 3 or text != answer.lstrip():
        return None
    old, new = base[: len(base) - len(text)], answer[: len(answer) - len(text)]
    return None if old == new else Indent(old, new)

"""The fence around a file in a prompt, and the file inside a model's answer.

An answer is read against the file it edits: which lines are the file's, which are talk around it, and which
fence is the wrapper all follow from the base text. Where two readings are possible the edit is refused, for a
refused edit costs a retry and a wrong reading costs the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lookup_spec.errors import EditError

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^`]*)")
_OMISSION = re.compile(  # like "# ... existing code ..." or "// rest of the file"
    r"\W*(\.\.\.|…)\W*(\w+ ){0,3}(rest|existing|unchanged|remaining|omitted)\b"
    r"|\W+(the )?(rest|remainder) of (the|your) (code|file|function|class)\b",
    re.IGNORECASE,
)
_LARGE = 24
_UNCLEAR = (
    "The file in the model's answer cannot be told from the text around it, so yours was left as it was; "
    "try again or put the instruction differently."
)
_PARTIAL = (
    "The model answered with a part of the file only, so yours was left as it was; try again or put the "
    "instruction differently."
)
_EMPTY = "The model's answer is empty, so the file was left as it was; try again."


def fence_for(text: str, minimum: int = 3) -> str:
    """A fence of backticks longer than any run of them in the text."""
    return "`" * max(minimum, 1 + max(map(len, re.findall("`+", text)), default=0))


@dataclass(frozen=True, slots=True)
class Fence:
    """A line that opens or closes a fenced block.

    Attributes:
        mark: three or more backticks or tildes.
        bare: nothing stands behind the mark.
    """

    mark: str
    bare: bool = True

    @classmethod
    def of(cls, line: str) -> Fence | None:
        """The fence that a line is, by the rules of CommonMark."""
        found = _FENCE.fullmatch(line)
        return cls(found[1], not found[2].strip()) if found else None

    def closes(self, opening: Fence) -> bool:
        """Whether this line ends a block that the other begins: same letter, as long or longer, and bare."""
        return self.bare and self.mark.startswith(opening.mark)


@dataclass(frozen=True, slots=True)
class _Base:
    """The file that is edited, as evidence for reading the answer: its lines that are not blank."""

    lines: frozenset[str]
    count: int
    first: str
    last: str
    leading: int
    settled: bool

    @classmethod
    def of(cls, text: str) -> _Base:
        lines = text.split("\n")
        solid = _solid(lines)
        first, last = (solid[0], solid[-1]) if solid else ("", "")
        leading = next((n for n, line in enumerate(solid) if not line.startswith("```")), len(solid))
        known = frozenset(line.strip() for line in solid)
        return cls(known, len(solid), first, last, leading, _is_settled(lines))

    def holds_any(self, lines: Sequence[str]) -> bool:
        return not self.lines.isdisjoint(map(str.strip, _solid(lines)))


def read_answer(answer: str, base: str, fence: str, *, opened: bool = False) -> str:
    """The edited file inside a model's answer; it ends with a newline if and only if the base does.

    Only the wrapper comes off: the fence that was asked for or, if the model chose another, the one around
    the whole file. Talk before and after it is dropped. Fences of the file itself stay.

    Args:
        answer: everything the model wrote; its line ends may be CRLF.
        base: the text of the file that is edited (LF line ends); empty for a new one.
        fence: the fence that the prompt asked the answer to use.
        opened: the prompt opened that fence already, so that the answer begins inside the file.

    Raises:
        EditError: the answer holds no file, only a part of one, or can be read in more than one way.
    """
    lines = answer.replace("\r\n", "\n").split("\n")
    if not lines[-1]:
        lines.pop()
    evidence = _Base.of(base)
    readings = [*(_inside(lines, evidence, Fence(fence)) if opened else _unwrapped(lines, evidence))]
    if not readings or not _is_closed(lines, readings[0], fence):
        readings += _wrapped(lines, evidence, opened)
    files = {tuple(lines[start:end]) for start, end in readings}
    if evidence.count and not any(_solid(file) for file in files or [_unfenced(lines)]):
        raise EditError(_EMPTY)
    if len(files) != 1:
        raise EditError(_UNCLEAR)
    [file] = files
    if _is_partial(file, evidence):
        raise EditError(_PARTIAL)
    text = "\n".join(file)
    if base and not base.endswith("\n"):
        return text.rstrip("\n")
    return text + "\n" if file else ""


class AnswerReader:
    """Reads an answer as it streams in; for all its pieces joined, gives what :func:`read_answer` gives.

    Lines come out as soon as they are surely the file's: after a line of the base has been seen, and up to a
    fence that may be the closing one, which is so until another line of the base follows.

    Args:
        base, fence, opened: as for :func:`read_answer`.
    """

    def __init__(self, base: str, fence: str, *, opened: bool = False) -> None:
        self._base, self._fence, self._opened = base, fence, opened
        self._evidence = _Base.of(base)
        self._lines: list[str] = []
        self._rest = ""
        self._sure = False
        self._wrapped = False
        self._ending = False
        self._given = 0

    def push(self, text: str) -> str:
        """Takes in more of the answer; returns what is now surely part of the edited file."""
        *complete, self._rest = (self._rest + text).split("\n")
        first = self._given
        for line in complete:
            self._lines.append(line.removesuffix("\r"))
            self._weigh(self._lines[-1])
        return self._joined(first, self._given)

    def finish(self) -> str:
        """The rest of the edited file.

        Raises:
            EditError: as for :func:`read_answer`; what was given so far must then not be applied.
        """
        file = read_answer("\n".join([*self._lines, self._rest]), self._base, self._fence, opened=self._opened)
        given = self._joined(0, self._given)
        if not file.startswith(given):
            raise EditError(_UNCLEAR)
        return file[len(given) :]

    def _weigh(self, line: str) -> None:
        fence = Fence.of(line)
        if fence is None and self._evidence.holds_any([line]):
            self._sure, self._ending = not self._wrapped, False
        elif fence is not None:
            self._wrapped = self._wrapped or not self._sure
            self._ending = self._ending or fence.bare
        if self._sure and not self._ending and line.strip():
            self._given = len(self._lines)

    def _joined(self, start: int, end: int) -> str:
        text = "\n".join(self._lines[start:end])
        return "\n" + text if 0 < start < end else text


def _inside(lines: Sequence[str], base: _Base, fence: Fence) -> Iterator[tuple[int, int]]:
    """The answer began inside the file; if it does not end with the fence it should, it must begin as the
    base does."""
    for end in _ends(lines, 0, fence, base):
        closed = _is_closed(lines, (0, end), fence.mark)
        if not _has_surplus_fence(lines[:end], base) and (closed or _begins(lines, base)):
            yield 0, end


def _unwrapped(lines: Sequence[str], base: _Base) -> Iterator[tuple[int, int]]:
    """The answer is the bare file: it begins and ends as the base does."""
    if _begins(lines, base) and _finishes(lines, base) and _is_settled(lines) == base.settled:
        yield 0, len(lines)


def _wrapped(lines: Sequence[str], base: _Base, opened: bool) -> Iterator[tuple[int, int]]:
    """The first fence of the answer is the wrapper, and what stands before it is talk."""
    if not _has_surplus_fence(lines, base):
        return
    at = next(n for n, line in enumerate(lines) if _is_foreign(line, base))
    fence = Fence.of(lines[at])
    if fence is None or base.holds_any(lines[:at]):
        return
    for end in _ends(lines, at + 1, Fence(fence.mark), base):
        file = lines[at + 1 : end]
        if fence.bare and end == len(lines):
            continue  # neither announced nor closed: nothing to go by
        if not opened or (not fence.bare and not _solid(lines[:at])):
            trusted = base.count <= 1 or base.holds_any(file)
        else:
            trusted = _begins(file, base) and _finishes(file, base)
        if trusted and not _has_surplus_fence(file, base):
            yield at + 1, end


def _ends(lines: Sequence[str], start: int, fence: Fence, base: _Base) -> list[int]:
    """Where a file that began at ``start`` inside ``fence`` may end; at most one place.

    A single closing fence is taken at its word. Of several, the last counts, if behind the base's last line.
    If there is none, the model may have closed with a shorter fence or not at all: then too the base's last line
    must stand before it, and blocks must be closed as they are in the base. Nothing of the base may follow.
    """
    ends = _closings(lines, start, fence)
    if not ends:
        shorter = [n for n in range(start, len(lines)) if _is_bare(lines[n], fence.mark[0])]
        ends = [n for n in (*shorter, len(lines)) if _is_settled(lines[start:n]) == base.settled]
        ends = [n for n in ends if _finishes(lines[start:n], base)]
    elif len(ends) > 1:
        ends = [n for n in ends[-1:] if _finishes(lines[start:n], base)]
    ends = [n for n in ends if not base.holds_any(_unfenced(lines[n + 1 :]))]
    return ends if len(ends) == 1 else []


def _closings(lines: Sequence[str], start: int, outer: Fence) -> list[int]:
    """Lines that may close the outer fence.

    Shorter fences, or of the other letter, are contents. One as long as the outer may open an inner block:
    models nest them so, although CommonMark does not.
    """
    closings: list[int] = []
    inner: Fence | None = None
    for n in range(start, len(lines)):
        fence = Fence.of(lines[n])
        if fence is None or not fence.mark.startswith(outer.mark):
            continue
        if inner is not None:
            inner = None if fence.closes(inner) else inner
        elif fence.bare:
            closings.append(n)
        else:
            inner = fence
    return closings


def _is_settled(lines: Sequence[str]) -> bool:
    """Whether every block of backticks is closed at the end, by the rules of CommonMark."""
    inner: Fence | None = None
    for fence in filter(None, map(Fence.of, lines)):
        if inner is not None:
            inner = None if fence.closes(inner) else inner
        elif fence.mark.startswith("`"):
            inner = fence
    return inner is None


def _is_bare(line: str, letter: str) -> bool:
    fence = Fence.of(line)
    return fence is not None and fence.bare and fence.mark.startswith(letter)


def _is_closed(lines: Sequence[str], reading: tuple[int, int], mark: str) -> bool:
    """Whether a reading ends with the fence that was asked for."""
    fence = Fence.of(lines[reading[1]]) if reading[1] < len(lines) else None
    return fence is not None and fence.closes(Fence(mark))


def _begins(lines: Sequence[str], base: _Base) -> bool:
    return _solid(lines)[:1] == [base.first]


def _finishes(lines: Sequence[str], base: _Base) -> bool:
    return _solid(lines)[-1:] == [base.last]


def _has_surplus_fence(lines: Sequence[str], base: _Base) -> bool:
    """Whether more fences stand before the first line of the base than in the base itself: the mark of a
    wrapper."""
    leading = 0
    for line in lines:
        if _is_foreign(line, base):
            leading += 1
        elif base.holds_any([line]):
            break
    return leading > base.leading


def _is_foreign(line: str, base: _Base) -> bool:
    """Whether a line may be a wrapper's fence. Tildes that the base has too underline its headings."""
    fence = Fence.of(line)
    return fence is not None and (fence.mark.startswith("`") or line.strip() not in base.lines)


def _is_partial(lines: Sequence[str], base: _Base) -> bool:
    """Whether lines were left out: a comment says so, or an end and half of a long file are missing."""
    if any(_OMISSION.match(line) for line in _solid(lines) if line.strip() not in base.lines):
        return True
    whole = _begins(lines, base) and _finishes(lines, base)
    return base.count >= _LARGE and 2 * len(_solid(lines)) < base.count and not whole


def _unfenced(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if not Fence.of(line)]


def _solid(lines: Sequence[str]) -> list[str]:
    """The lines that are not blank, without white space at their ends."""
    return [line.rstrip() for line in lines if line.strip()]

"""Which lines of a model's answer are the file, judged by the file that was edited."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lookup_spec.text.fences import Fence, closings, is_settled

Reading = tuple[int, int]  # lines start:end of an answer
_OMISSION = re.compile(  # like "# ... existing code ..." or "// rest of the file"
    r"\W*(\.\.\.|…)\W*(\w+ ){0,3}(rest|existing|unchanged|remaining|omitted)\b"
    r"|\W+(the )?(rest|remainder) of (the|your) (code|file|function|class)\b",
    re.IGNORECASE,
)
_LONG = 24  # lines that are not blank; in shorter files, losing half of them is common


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the base text says about an answer.

    Attributes:
        lines: the base's lines that are not blank, without white space around them.
        count: how many there are, repetitions included.
        first: the first of them, with its indentation.
        last: the last of them, likewise.
        depth: how many fences stand before the first line that is none.
        settled: all blocks of the base are closed.
    """

    lines: frozenset[str]
    count: int
    first: str
    last: str
    depth: int
    settled: bool

    @classmethod
    def of(cls, base: str) -> Evidence:
        """The evidence that a text gives (LF line ends)."""
        lines = base.split("\n")
        solid = _solid(lines)
        depth = next((n for n, line in enumerate(solid) if not line.startswith("```")), len(solid))
        first, last = (solid[0], solid[-1]) if solid else ("", "")
        return cls(frozenset(map(str.strip, solid)), len(solid), first, last, depth, is_settled(lines))

    def readings(self, lines: Sequence[str], asked: Fence, opened: bool) -> list[Reading]:
        """All ways to read an answer that hold together; just one, if it is clear.

        Args:
            lines: of the answer.
            asked: the fence that the prompt asked for.
            opened: the prompt opened it, so that the answer begins inside the file.
        """
        found = [*(self._inside(lines, asked) if opened else self._bare(lines))]
        if found and _closes(lines, found[0][1], asked):
            return found
        return [*found, *self._wrapped(lines, asked if opened else None)]

    def holds_any(self, lines: Sequence[str]) -> bool:
        """Whether one of these lines is the base's, whatever its indentation."""
        return not self.lines.isdisjoint(map(str.strip, _solid(lines)))

    def is_empty(self, lines: Sequence[str]) -> bool:
        """Whether nothing is left of a file that was not empty."""
        return self.count > 0 and not _solid(lines)

    def omits(self, line: str) -> bool:
        """Whether a line is a comment that stands for lines left out; not if the base has it, too."""
        return _OMISSION.match(line) is not None and line.strip() not in self.lines

    def is_partial(self, lines: Sequence[str]) -> bool:
        """Whether lines were left out: a comment says so, or an end and half of a long file are missing."""
        solid = _solid(lines)
        if any(map(self.omits, solid)):
            return True
        return self.is_little(len(solid)) and not (self._begins(lines) and self._finishes(lines))

    def is_little(self, lines: int) -> bool:
        """Whether so few lines, blank ones not counted, may be a part of the base: less than half of a long file."""
        return self.count >= _LONG and 2 * lines < self.count

    def _inside(self, lines: Sequence[str], asked: Fence) -> Iterator[Reading]:
        """The answer began inside the file; if it does not end with the fence it should, it must begin as the
        base does."""
        for end in self._ends(lines, 0, asked):
            trusted = _closes(lines, end, asked) or self._begins(lines)
            if trusted and not self._is_deeper(lines[:end]):
                yield 0, end

    def _bare(self, lines: Sequence[str]) -> Iterator[Reading]:
        """The answer is nothing but the file: it begins and ends as the base does."""
        if self._begins(lines) and self._finishes(lines) and is_settled(lines) == self.settled:
            yield 0, len(lines)

    def _wrapped(self, lines: Sequence[str], opened: Fence | None) -> Iterator[Reading]:
        """The first fence of the answer is a wrapper, and what stands before it is talk."""
        at = next((n for n, line in enumerate(lines) if self._fence(line)), len(lines))
        wrapper = Fence.of(lines[at]) if at < len(lines) else None
        if wrapper is None or self.holds_any(lines[:at]) or not self._is_deeper(lines):
            return
        for end in self._ends(lines, at + 1, Fence(wrapper.mark)):
            file = lines[at + 1 : end]
            if wrapper.bare and end == len(lines):
                continue  # neither announced nor closed: nothing to go by
            if opened and _closes(lines, end, opened) and not wrapper.mark.startswith(opened.mark):
                continue  # that closes the longer fence of the prompt, not this one
            if not opened or (not wrapper.bare and not _solid(lines[:at])):
                trusted = self.count <= 1 or self.holds_any(file)
            else:
                trusted = self._begins(file) and self._finishes(file)
            if trusted and not self._is_deeper(file) and is_settled(file) == self.settled:
                yield at + 1, end

    def _ends(self, lines: Sequence[str], start: int, fence: Fence) -> list[int]:
        """Where a file that began at ``start`` inside ``fence`` may end; at most one place.

        A single closing fence is taken at its word. Of several, the last counts, if behind the base's last
        line. If there is none, the model may have closed with a shorter fence or not at all: then too the
        base's last line must stand before it, with blocks closed as in the base, and no fence may follow.
        Nothing of the base may follow either way.
        """
        ends = list(closings(lines, start, fence))
        if not ends:
            shorter = (n for n in range(start, len(lines)) if _closes(lines, n, Fence(3 * fence.mark[0])))
            ends = [
                n
                for n in (*shorter, len(lines))
                if self._finishes(lines[start:n])
                and is_settled(lines[start:n]) == self.settled
                and not any(map(Fence.of, lines[n + 1 :]))
            ]
        elif len(ends) > 1:
            ends = [n for n in ends[-1:] if self._finishes(lines[start:n])]
        ends = [n for n in ends if not self.holds_any([line for line in lines[n + 1 :] if not Fence.of(line)])]
        return ends if len(ends) == 1 else []

    def _begins(self, lines: Sequence[str]) -> bool:
        return _solid(lines)[:1] == [self.first]

    def _finishes(self, lines: Sequence[str]) -> bool:
        return _solid(lines)[-1:] == [self.last]

    def _is_deeper(self, lines: Sequence[str]) -> bool:
        """Whether the first line of the base stands inside more blocks than it does there: there is a wrapper."""
        blocks: list[Fence] = []
        deepest = 0
        for line in lines:
            fence = self._fence(line)
            if fence is not None and blocks and fence.closes(blocks[-1]):
                blocks.pop()
            elif fence is not None:
                blocks.append(fence)
                deepest = max(deepest, len(blocks))
            elif self.holds_any([line]):
                return len(blocks) > self.depth
        return deepest > self.depth

    def _fence(self, line: str) -> Fence | None:
        """The fence that a line is; not tildes that the base has too: they underline its headings."""
        fence = Fence.of(line)
        underline = fence is not None and fence.mark.startswith("~") and line.strip() in self.lines
        return None if underline else fence


def _closes(lines: Sequence[str], end: int, fence: Fence) -> bool:
    """Whether the line at ``end``, if there is one, closes the fence."""
    closing = Fence.of(lines[end]) if end < len(lines) else None
    return closing is not None and closing.closes(fence)


def _solid(lines: Sequence[str]) -> list[str]:
    """The lines that are not blank, without white space at their ends."""
    return [line.rstrip() for line in lines if line.strip()]

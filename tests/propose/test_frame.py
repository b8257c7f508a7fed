from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from lookup_spec.propose.frame import framed
from lookup_spec.propose.prompt import Span


class Glued:
    """Tokens are words, spaces and marks; a mark with a line break behind it is one token, other than alone."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def encode(self, text: str) -> list[int]:
        pieces = re.findall(r"\w+| +|\W+?\n|\W", text)
        self._texts += [piece for piece in dict.fromkeys(pieces) if piece not in self._texts]
        return [self._texts.index(piece) for piece in pieces]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self._texts[token] for token in ids]


def expected(before: str, base: str, after: str, cut: int = 0) -> tuple[str, str]:
    """What is expected to open the answer, and the whole of it; ``cut`` tokens are left out at the base's end."""
    glued = Glued()
    head, text, tail = (glued.encode(part) for part in (before, base, after))
    found = framed([*head, *text, *tail], Span(len(head), len(head) + len(text) - cut, "base"), glued)
    assert list(found.ids) == glued.encode("".join(glued.pieces(found.ids))), "tokenized as an answer"
    opening = "".join(glued.pieces(found.ids[: found.opening]))
    return opening, "".join(glued.pieces(found.ids))


@pytest.mark.parametrize("cut", [0, 1])
@pytest.mark.parametrize(("opening", "closing"), [("```python\n", "```"), ("```\n", "```"), ('"""\n', '"""')])
def test_lines_around_the_base_that_begin_alike_frame_the_answer(opening: str, closing: str, cut: int) -> None:
    """Whether or not the base's last token belongs to its span, the answer is the base in its frame."""
    base = "x = 1\ny = f()\n"
    assert expected(f"Edit:\n{opening}", base, f"{closing}\nPlease.", cut) == (opening, f"{opening}{base}{closing}")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Edit:\n", "Please.\n"),
        ("", ""),
        ("Edit: ", "\n```\n"),
        ("<file>\n", "</file>\n"),
        ("```\n", "\n"),
        ("-\n", "-\n"),
        ("\n", "\n\n"),
    ],
)
def test_without_a_frame_the_answer_is_the_base(before: str, after: str) -> None:
    assert expected(before, "x = 1\n", after) == ("", "x = 1\n")


def test_without_a_retokenizer_the_answer_is_the_base() -> None:
    assert framed([1, 2, 3, 4], Span(1, 3, "base"), None).ids == (2, 3)

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup_spec.propose.ending import Ending, Endings


class Texts:
    """Tokens by number; counts how often each one's text is asked for."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts, self.asked = texts, list[int]()

    def pieces(self, ids: Sequence[int]) -> list[str]:
        self.asked += ids
        return [self.texts[token] for token in ids]

    def encode(self, text: str) -> list[int]:
        raise AssertionError(f"{text!r} need not be encoded")


SLOW = (
    (Ending.LINE, r".*\n[ \t]*"),
    (Ending.SPACE, r"[ \t]*"),
    (Ending.WORD, r".*\w[ \t]*"),
    (Ending.MARK, r".*"),
)


def slow_ending(piece: str) -> Ending:
    """The first of the patterns that the whole token has."""
    return next(ending for ending, pattern in SLOW if re.fullmatch(pattern, piece, re.DOTALL))


@given(st.lists(st.text("aé1_ \t\n\r(.日\u0301👩\u3000\ufffd", max_size=5), min_size=1, max_size=9), st.data())
def test_endings_are_as_read_by_patterns(texts: list[str], data: st.DataObject) -> None:
    """Whatever tokens are asked for in whatever order: each ending is what its text's end says, and read once."""
    known = Texts(texts)
    endings = Endings(known)
    asked = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=20))
    assert [endings[token] for token in asked] == [slow_ending(texts[token]) for token in asked]
    assert known.asked == list(dict.fromkeys(asked))


@pytest.mark.parametrize(
    ("piece", "ending"),
    [
        ("name", Ending.WORD), (" x_", Ending.WORD), ("1  ", Ending.WORD), ("日", Ending.WORD),
        ("\n", Ending.LINE), (");\n\n", Ending.LINE), ("\r\n    ", Ending.LINE),
        (" ", Ending.SPACE), ("\t\t", Ending.SPACE), ("", Ending.SPACE),
        ("(", Ending.MARK), (" = ", Ending.MARK), ("\n}", Ending.MARK), ("\ufffd", Ending.MARK),
    ],
)  # fmt: skip
def test_usual_tokens(piece: str, ending: Ending) -> None:
    """Lines, spaces, words and marks are told apart; spaces behind a word or a mark are not looked at."""
    assert Endings(Texts([piece]))[0] == ending


def test_without_a_tokenizer_all_tokens_end_alike() -> None:
    """Where no texts are known, nothing is told apart."""
    endings = Endings(None)
    assert {endings[token] for token in range(9)} == {Ending.WORD}

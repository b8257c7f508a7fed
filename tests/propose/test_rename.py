from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup_spec.propose.rename import Rename, announced, noticed, rewrite
from lookup_spec.propose.renamed import NEVER, RenamedText


class Toy:
    """Tokens are words with the space before them, and single other characters; ids are given as they come."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}

    def encode(self, text: str) -> list[int]:
        return [self._ids.setdefault(piece, len(self._ids)) for piece in re.findall(r" ?\w+|.|\n", text)]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        texts = list(self._ids)
        return [texts[token] for token in ids]


@pytest.mark.parametrize(
    ("message", "pairs"),
    [
        ("Rename get_user to fetch_user everywhere.", [("get_user", "fetch_user")]),
        ("replace `foo` with `bar`, please", [("foo", "bar")]),
        ("old -> fresh, and a => b", [("old", "fresh"), ("a", "b")]),
        ("Fix the bug", []),
        ("x to x", []),
        ("change 5 to 6", []),
    ],
)
def test_announced_renames(message: str, pairs: list[tuple[str, str]]) -> None:
    """The usual ways of asking for a rename are understood; numbers are no names."""
    assert [(rename.old, rename.new) for rename in announced(message)] == pairs


@pytest.mark.parametrize(
    ("before", "after", "rename"),
    [
        ("x = get_user(1)", "x = fetch_user(1)", Rename("get_user", "fetch_user")),
        ("a.b.c", "a.bb.c", Rename("b", "bb")),
        ("f(x)", "f(x, y)", None),
        ("f(x)", "f(7)", None),
        ("a b", "a c", None),
        ("same", "same", None),
        ("", "", None),
    ],
)
def test_noticed_renames(before: str, after: str, rename: Rename | None) -> None:
    """A difference is a rename only if one name was replaced, and text stands behind it."""
    assert noticed(before, after) == rename


words = st.sampled_from(["ab", "a", "abc", "x", "\n", " ", "(", "ab_x", "\n\n", "ü"])


@given(st.lists(words, max_size=30).map("".join), st.sampled_from(["y", "long_name", "x"]))
def test_rewriting_equals_replacing_in_the_text(text: str, new: str) -> None:
    """The rewritten tokens are those of the text with whole names replaced, and places keep their order."""
    toy = Toy()
    ids = toy.encode(text)
    result = rewrite(ids, toy.pieces(ids), [Rename("ab", new)], toy)
    assert "".join(toy.pieces(result.ids)) == re.sub(r"(?<!\w)ab(?!\w)", new, text)
    assert len(result.places) == len(ids) + 1
    assert result.places == sorted(result.places)
    assert result.places[-1] == len(result.ids)
    for place, fork in result.forks.items():
        assert result.ids[place] != ids[fork.original]
        assert "".join(toy.pieces(result.ids[:place])) == re.sub(
            r"(?<!\w)ab(?!\w)", new, "".join(toy.pieces(ids[: fork.original]))
        )


def test_a_refuted_rename_is_taken_back_for_good() -> None:
    """After the answer has kept the old name twice, the text is the original again, and stays so."""
    toy = Toy()
    ids = toy.encode("a = ab\nb = ab\nc = ab\n")
    text = RenamedText(ids, 0, len(ids), toy)
    assert text.announce(toy.encode("ab to x"))
    place = text.next_fork(0)
    assert toy.pieces([guess.text[guess.place] for guess in text.branches(place)]) == [" x", " ab"]
    for _ in range(2):
        text.tally(place, applied=False)
    assert text.drop_refuted()
    assert text.ids == ids
    assert text.next_fork(0) == NEVER
    assert not text.announce(toy.encode("ab to x"))


def test_only_the_base_is_renamed() -> None:
    """What stands around the base keeps its names, and places behind it are moved along."""
    toy = Toy()
    head, body, tail = toy.encode("ab;"), toy.encode("ab;ab;"), toy.encode("ab;")
    ids = [*head, *body, *tail]
    text = RenamedText(ids, len(head), len(head) + len(body), toy)
    assert text.announce(toy.encode("ab to two words"))
    assert "".join(toy.pieces(text.ids)) == "ab;two;two;ab;"
    assert [text.place(place) for place in range(len(ids) + 1)] == list(range(len(ids) + 1))
    assert [text.original(place) for place in range(len(ids))] == list(range(len(ids)))

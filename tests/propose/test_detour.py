from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from lookup_spec.propose.change import Change, Indent, Replacement
from lookup_spec.propose.changed import NEVER, Changes
from lookup_spec.propose.guess import Kind
from lookup_spec.propose.names import Rename
from tests.fakes.toy_tokens import ToyTokens

CHANGES = [
    Rename("ab", "y"),
    Rename("ab", "long_name"),
    Replacement("(", ""),
    Replacement("x", "x: x"),
    Replacement("ab", "z ab", left="\n"),
    Indent("  ", "    "),
    Indent("  ", ""),
]

texts = st.lists(
    st.sampled_from(["ab", "a", "abc", "x", "\n", " ", "  ", "(", "ab_x", "\n\n", "ü", "\n  "]), max_size=30
).map("".join)


def twin(text: str, change: Change) -> str:
    """The text with a change applied, the last edit first."""
    for edit in reversed(change.edits(text)):
        text = text[: edit.start] + edit.new + text[edit.end :]
    return text


@example("\n  ( ", Replacement("(", ""))
@given(texts, st.sampled_from(CHANGES))
def test_taking_every_detour_gives_the_changed_text(text: str, change: Change) -> None:
    """Along all detours stand the tokens of the changed text; each parts from the old ones at its first token and
    leads back to a later place."""
    toy = ToyTokens()
    text += "\n.\n"  # a detour needs a token behind it to come back to
    ids = toy.encode(text)
    changes = Changes(ids, 0, len(ids), toy)
    changes.add([change])
    way: list[int] = []
    place = 0
    while (fork := changes.next_fork(place, len(ids))) < NEVER:
        detour = changes.at(fork)
        assert detour is not None
        assert (detour.start, detour.ids[0] != ids[fork], detour.end > fork) == (fork, True, True)
        way += [*ids[place:fork], *detour.ids]
        place = detour.end
    way += ids[place:]
    expected = twin(text, change)
    assert way == toy.encode(expected)


@given(texts, st.lists(st.sampled_from(CHANGES), min_size=1, max_size=4), st.integers(0, 40), st.integers(0, 40))
def test_the_next_fork_is_the_first_place_with_a_detour(text: str, found: list[Change], start: int, stop: int) -> None:
    """Looking ahead finds what looking at every single place finds."""
    toy = ToyTokens()
    ids = toy.encode(text)
    changes = Changes(ids, 0, len(ids), toy)
    changes.add(found)
    places = [place for place in range(start, min(stop, len(ids))) if changes.at(place) is not None]
    assert changes.next_fork(start, stop) == (places[0] if places else NEVER)


def test_long_texts_are_changed_across_pages() -> None:
    """Pages end with lines, so a change is found on every line of a long text, and in one endless line, too."""
    toy = ToyTokens()
    for text in ("ab = ab\n" * 1000, "ab " * 3000):
        ids = toy.encode(text)
        changes = Changes(ids, 0, len(ids), toy)
        changes.add([Rename("ab", "y")])
        forks = [place for place in range(len(ids)) if changes.at(place) is not None]
        assert [toy.pieces(ids[place : place + 1])[0].strip() for place in forks] == ["ab"] * text.count("ab")


def test_a_refuted_change_is_taken_back_for_good() -> None:
    """After the answer has kept the old name twice, there is no detour any more, even if it is asked for again."""
    toy = ToyTokens()
    ids = toy.encode("a = ab\nb = ab\nc = ab\n")
    changes = Changes(ids, 0, len(ids), toy)
    changes.add([Rename("ab", "x")])
    for _ in range(2):
        detour = changes.at(changes.next_fork(0, len(ids)))
        assert detour is not None
        new, old = changes.guesses(detour)
        assert (new.kind, toy.pieces([new.token]), old.kind, toy.pieces([old.token])) == (
            Kind.RENAMED, [" x"], Kind.KEPT, [" ab"],
        )  # fmt: skip
        changes.tally(detour, applied=False)
    changes.add([Rename("ab", "x")])
    assert changes.next_fork(0, len(ids)) == NEVER


def test_only_the_base_is_changed() -> None:
    """What stands around the base keeps its names."""
    toy = ToyTokens()
    head, body, tail = toy.encode("ab;"), toy.encode("ab;ab;"), toy.encode("ab;")
    ids = [*head, *body, *tail]
    changes = Changes(ids, len(head), len(head) + len(body), toy)
    changes.add([Rename("ab", "two words")])
    assert [place for place in range(len(ids)) if changes.at(place) is not None] == [2, 4]

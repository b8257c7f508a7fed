"""Positions, against a slow count, in every encoding."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types

from lookup_spec.lsp.documents import OpenDocument
from lookup_spec.text.positions import Encoding
from tests.lsp.client import apply

TEXTS = st.text(st.sampled_from("ab \t\r\n\x0c\u2028é漢😀"), max_size=24)
ENCODINGS = st.sampled_from(["utf-8", "utf-16", "utf-32"])


def document(text: str, encoding: Encoding) -> OpenDocument:
    return OpenDocument("file:///a.py", "python", 1, text, encoding)


@given(TEXTS, ENCODINGS, st.data())
def test_a_place_that_an_editor_can_name_comes_back(text: str, encoding: Encoding, data: st.DataObject) -> None:
    one = document(text, encoding)
    offset = data.draw(st.integers(0, len(text)))
    # Between CR and LF, and behind a line's end, there is no place of its own.
    if text[offset - 1 : offset + 1] == "\r\n":
        return
    assert one.offset(one.position(offset)) == offset


@given(TEXTS, TEXTS, ENCODINGS, st.data())
def test_a_change_is_what_the_editor_made_of_its_text(
    text: str, inserted: str, encoding: Encoding, data: st.DataObject
) -> None:
    one = document(text, encoding)
    places = sorted(data.draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))))
    start, end = (one.position(place) for place in places)
    ranges = {"start": _wire(start), "end": _wire(end)}
    change = types.TextDocumentContentChangePartial(types.Range(start, end), inserted)
    changed = one.changed(2, [change])
    assert changed.text == apply(text, [{"range": ranges, "newText": inserted}], encoding)
    assert (one.text, changed.version) == (text, 2)


@given(TEXTS, st.lists(st.tuples(st.integers(1, 3), st.integers(0, 3), TEXTS), max_size=3), ENCODINGS)
def test_hunks_make_the_same_text_in_the_editor(
    text: str, hunks: list[tuple[int, int, str]], encoding: Encoding
) -> None:
    """And none of them is put behind the last line's end, if its own last line ends alike."""
    one, place, taken = document(text, encoding), -1, []
    lines, new = one.lines, ""
    for gap, size, inserted in hunks:
        start = min(max(place, 0) + gap - (place < 0), len(lines))
        end = min(start + size, len(lines))
        if start > place:
            new += "".join(lines[max(place, 0) : start]) + inserted
            taken.append((start, end, inserted))
            place = end
    edits = one.edits(taken)
    ranges = [{"start": _wire(edit.range.start), "end": _wire(edit.range.end)} for edit in edits]
    wire = [{"range": range_, "newText": edit.new_text} for range_, edit in zip(ranges, edits, strict=True)]
    assert apply(text, wire, encoding) == new + "".join(lines[max(place, 0) :])
    if text.endswith("a\n"):
        for edit in edits:
            assert edit.range.start.line < len(lines) or not edit.new_text.endswith("b\n")


def test_a_place_within_a_character_or_beyond_the_end_is_at_the_nearest_before() -> None:
    one = document("a😀\nb", "utf-16")
    assert [one.offset(types.Position(0, n)) for n in (1, 2, 3, 9)] == [1, 1, 2, 2]
    assert [one.offset(types.Position(n, 7)) for n in (1, 2, 5)] == [4, 4, 4]


def _wire(position: types.Position) -> dict[str, int]:
    return {"line": position.line, "character": position.character}

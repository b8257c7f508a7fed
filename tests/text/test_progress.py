"""How far a rewrite has come."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lookup_spec.text.progress import LineProgress

BASE = "a\nb\n\nc\nd\n\ne\n"


def test_an_unchanged_copy_passes_line_by_line() -> None:
    progress = LineProgress(BASE)
    assert [progress.push(line) for line in BASE.splitlines(keepends=True)] == [1, 2, 3, 4, 5, 6, 7]


def test_inserted_lines_do_not_move_it_and_deleted_ones_are_skipped() -> None:
    progress = LineProgress(BASE)
    assert progress.push("a\nnew\nnewer\n") == 1
    assert progress.push("d\n") == 5


@given(st.text("ab\n"), st.lists(st.text("ab\n"), max_size=8))
def test_it_never_goes_back_and_never_past_the_end(base: str, pieces: list[str]) -> None:
    progress = LineProgress(base)
    seen = [0, *map(progress.push, pieces)]
    assert seen == sorted(seen)
    assert seen[-1] <= progress.lines


@given(st.lists(st.sampled_from(["a\n", "b", "\n", "c\n"]), max_size=12), st.data())
def test_it_does_not_depend_on_how_the_text_is_cut(parts: list[str], data: st.DataObject) -> None:
    text = "".join(parts)
    cut = data.draw(st.integers(0, len(text)))
    one, two = LineProgress(BASE), LineProgress(BASE)
    two.push(text[:cut])
    assert one.push(text) == two.push(text[cut:])

"""Which lines a new version keeps, told while it comes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from lookup_spec.text.align import Aligner, Change, differences

# Some tell much, some little, some nothing; the last are so long that one makes up for a few others.
WORDS = ["}", "", "else", "x = 1", "return total", "def first():", "def second(one, two):", "assert result == value_1"]
FILES = st.lists(st.sampled_from(WORDS), max_size=14).map(lambda words: [f"{word}\n" for word in words])
LONG = [f"line number {n} of the file\n" for n in range(1, 41)]


def applied(old: Sequence[str], changes: Sequence[Change]) -> list[str]:
    new = list(old)
    for change in reversed(changes):
        new[change.start : change.end] = change.lines
    return new


def told(old: Sequence[str], new: Sequence[str]) -> list[list[Change]]:
    """What each new line brings, and at last the end."""
    aligner = Aligner(old)
    return [*map(aligner.push, new), aligner.finish()]


def twin(old: Sequence[str], new: Sequence[str]) -> list[list[Change]]:
    """The same by trying every stretch of the old text after every line."""

    def letters(lines: Sequence[str]) -> int:
        return sum(character.isalnum() for line in lines for character in line)

    def settle(end: int, kept: int) -> list[Change]:
        nonlocal passed, pending
        changes = [
            Change(passed + change.start, passed + change.end, change.lines)
            for change in differences(old[passed : end - kept], pending[: len(pending) - kept])
        ]
        passed, pending = end, []
        return changes

    passed, pending, steps = 0, [], []
    for line in new:
        if not pending and passed < len(old) and old[passed] == line:
            passed += 1
            steps.append([])
            continue
        pending.append(line)
        found = []
        for end in range(passed + 1, len(old) + 1):
            kept = 0
            while kept < min(len(pending), end - passed) and pending[-1 - kept] == old[end - 1 - kept]:
                kept += 1
            stretch = old[end - kept : end]
            says = any(letters([one]) and old.count(one) <= 8 for one in stretch)
            if says and letters(stretch) >= max(8, letters(old[passed : end - kept]) / 2):
                found.append((end - kept, end))
        steps.append(settle(min(found)[1], min(found)[1] - min(found)[0]) if found else [])
    return [*steps, settle(len(old), 0)]


@given(old=FILES, new=FILES)
@example(old=["a\n"] * 12, new=["b\n", *["a\n"] * 11])
@example(old=[*LONG, *LONG], new=[*LONG[:5], *LONG])
def test_changes_are_told_as_soon_as_the_slow_twin_tells_them(old, new):
    """After every line, the same changes at the same time."""
    assert told(old, new) == twin(old, new)


@given(old=FILES, new=FILES)
def test_the_old_lines_with_the_changes_are_the_new_ones(old, new):
    """Changes ascend, a kept line stands between any two, and none is empty."""
    changes = [*chain(*told(old, new))]
    assert applied(old, changes) == new
    assert all(one.end < other.start for one, other in pairwise(changes))
    assert all(change.end > change.start or change.lines for change in changes)


@given(old=FILES, new=FILES)
def test_complete_versions_are_compared_alike(old, new):
    """The comparison of complete versions keeps the same promises, and what is equal at both ends stays."""
    changes = list(differences(old, new))
    assert applied(old, changes) == new
    assert all(one.end < other.start for one, other in pairwise(changes))
    if changes:
        first, last = changes[0], changes[-1]
        assert old[: first.start] == new[: first.start]
        assert old[first.start : first.end][:1] != list(first.lines[:1]) or not first.lines
        assert old[last.end :] == new[len(new) - (len(old) - last.end) :]


def test_unique_lines_hold_two_versions_together():
    """A moved brace does not join a new function with an old one."""
    old = ["def a {\n", "  one\n", "}\n", "\n", "def b {\n", "  two\n", "}\n"]
    new = ["def a {\n", "  one\n", "}\n", "\n", "def n {\n", "  new\n", "}\n", "\n", "def b {\n", "  two\n", "}\n"]
    assert list(differences(old, new)) == [Change(4, 4, ("def n {\n", "  new\n", "}\n", "\n"))]
    assert [*chain(*told(old, new))] == list(differences(old, new))


def test_a_changed_line_is_told_with_the_next_unchanged_one():
    new = [*LONG[:9], "something else entirely\n", *LONG[10:]]
    assert told(LONG, new)[10] == [Change(9, 10, ("something else entirely\n",))]


def test_an_inserted_block_is_told_with_the_next_unchanged_line():
    new = [*LONG[:9], "one\n", "\n", "two\n", *LONG[9:]]
    assert told(LONG, new)[12] == [Change(9, 9, ("one\n", "\n", "two\n"))]


def test_a_deletion_is_told_when_half_as_much_text_has_followed_as_it_removes():
    """Six lines deleted: told with the third line behind them; twenty-five of forty: at the end."""
    assert [bool(step) for step in told(LONG, [*LONG[:9], *LONG[15:]])].index(True) == 9 + 2
    *steps, last = told(LONG, [*LONG[:9], *LONG[34:]])
    assert not any(steps)
    assert last == [Change(9, 34, ())]


def test_a_block_copied_to_an_earlier_place_is_no_deletion():
    """Seven lines from further down come first: nothing of what lies between is given up."""
    steps = told(LONG, [*LONG[:5], *LONG[20:27], *LONG[5:]])
    assert [*chain(*steps)] == steps[12] == [Change(5, 5, tuple(LONG[20:27]))]


def test_lines_that_stand_everywhere_do_not_end_a_change():
    """Braces and blank lines behind an insertion may belong to it."""
    old = ["if (a) {\n", "  first(a);\n", "}\n", "\n", "done(everything);\n"]
    new = ["if (a) {\n", "  first(a);\n", "  if (b) {\n", "    x(b);\n", "  }\n", "}\n", "\n", "done(everything);\n"]
    aligner = Aligner(old)
    assert [aligner.push(line) for line in new[:-1]] == [[]] * 7
    assert aligner.push(new[-1]) == [Change(2, 2, ("  if (b) {\n", "    x(b);\n", "  }\n"))]


def test_repeated_lines_cost_no_more_than_others():
    """Thousands of equal lines against thousands of others, and the other way round."""
    many = ["the same line\n"] * 4000
    other = [f"another line {n % 7}\n" for n in range(4000)]
    for old, new in ((many, other), (other, many), ([*many, *other], [*other, *many])):
        assert applied(old, [*chain(*told(old, new))]) == new

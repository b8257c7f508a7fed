"""Answers that rewrite a file, as hunks: nothing but the edit changes, wherever the answer ends."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import suppress

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lookup_spec.errors import EditError
from lookup_spec.text.answer import AnswerReader, read_answer
from lookup_spec.text.edit_stream import EditStream
from lookup_spec.text.fences import fence_for
from lookup_spec.text.hunks import Hunk, apply_hunks, rewritten
from lookup_spec.text.lines import SourceText

ROWS = "".join(f"row {n:02}\n" for n in range(1, 19))
NUMBERED = "".join(f"statement_{n} = compute({n})\n" for n in range(1, 61))
WORDS = st.sampled_from(
    ["a", "b", "", "}", "    total = total + 1", "def f():", "print('é ✅')", "```", "// ... existing code ..."]
)
ENDINGS = st.sampled_from(["\n", "\r\n", "\r"])


def stream(text: str, lines: tuple[int, int] | None = None, fence: str = "") -> EditStream:
    """Ready for an answer that begins inside its fence."""
    source = SourceText.from_text(text)
    start, end = lines or (0, len(source.lines))
    base = "".join(source.lines[start:end])
    return EditStream(source, AnswerReader(base, fence or fence_for(base, 4), opened=True), start, end)


def pieces(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def edited(text: str, answer: str, lines: tuple[int, int] | None = None, size: int = 7) -> EditStream:
    """After a complete answer."""
    one = stream(text, lines)
    for piece in pieces(answer, size):
        one.push(piece)
    one.finish()
    return one


@given(
    lines=st.lists(st.tuples(WORDS, ENDINGS), max_size=9),
    answer=st.lists(WORDS, max_size=9),
    ended=st.booleans(),
    bom=st.booleans(),
    cuts=st.lists(st.integers(0, 90), max_size=6),
)
def test_the_hunks_make_the_file_that_the_whole_answer_holds(lines, answer, *, ended, bom, cuts):
    """However the answer is cut: the same hunks, never taken back, and with them the file that reading the whole
    answer at once gives; or both refuse it."""
    text = "\ufeff" * bom + "".join(map("".join, lines))
    text = text if ended else text.rstrip("\r\n")
    source = SourceText.from_text(text)
    said = "".join(f"{line}\n" for line in answer) + "`````"
    edges = sorted({0, len(said), *(min(cut, len(said)) for cut in cuts)})
    one, whole = stream(text, fence="`````"), stream(text, fence="`````")
    told: list[Hunk] = []
    for a, b in itertools.pairwise(edges):
        told += one.push(said[a:b])
        assert one.hunks == told
    try:
        expected = rewritten(source, read_answer(said, source.text, "`````", opened=True))
    except EditError:
        with pytest.raises(EditError):
            one.finish()
        return
    told += one.finish()
    assert one.text == apply_hunks(source, told) == expected
    whole.push(said)
    whole.finish()
    assert whole.hunks == told


@pytest.mark.parametrize("size", [1, 3, 7, 10_000])
@pytest.mark.parametrize(
    ("text", "new", "hunks"),
    [
        (ROWS, "row 01\nrow 02\nrow 03\nrow 04\n", [Hunk(4, 18, "")]),
        (ROWS.rstrip("\n"), "row 01\nrow 02\n", [Hunk(1, 18, "row 02")]),
        (ROWS, ROWS, []),
        (ROWS, ROWS + "row 19\nrow 20\n", [Hunk(18, 18, "row 19\nrow 20\n")]),
        (ROWS, ROWS.replace("row 18", "last"), [Hunk(17, 18, "last\n")]),
        (ROWS, ROWS.removeprefix("row 01\n"), [Hunk(0, 1, "")]),
        (ROWS, "zero\n" + ROWS, [Hunk(0, 0, "zero\n")]),
        (ROWS, ROWS.replace("row 0", "line "), [Hunk(0, 9, "".join(f"line {n}\n" for n in range(1, 10)))]),
        ("", "a\nb\n", [Hunk(0, 0, "a\nb\n")]),
    ],
)
def test_a_file_that_grows_or_shrinks(text, new, hunks, size):
    """No old line stays behind a shorter file, no blank one is added, and the end is as it was."""
    done = edited(text, new + "````", size=size)
    assert done.hunks == hunks
    assert done.text == (new if text.endswith("\n") or not text else new.rstrip("\n"))


def test_an_empty_answer_is_refused():
    with pytest.raises(EditError, match="empty"):
        edited(ROWS, "````")


@pytest.mark.parametrize("ending", ["", "````\nDone."])
def test_an_answer_that_ends_early_never_loses_the_rest(ending):
    """Cut after any character while lines 10 to 50 are rewritten, the hunks leave lines 1 to 9 and 51 to 60 alone, and
    change lines between only whole."""
    source = SourceText.from_text(NUMBERED)
    lines = NUMBERED.splitlines(keepends=True)
    new = [line.replace("compute", "evaluate") if 9 <= n < 50 else line for n, line in enumerate(lines)]
    answer = "".join(new) + ending
    one = stream(NUMBERED)
    for character in answer:
        one.push(character)
        result = apply_hunks(source, one.hunks).splitlines(keepends=True)
        assert result[:9] == lines[:9]
        assert result[50:] == lines[50:]
        assert set(result) <= {*lines, *new}


def test_an_answer_that_leaves_lines_out_gives_nothing_behind_them():
    """A comment in place of code never gets into the file, and no hunk that was told depends on it."""
    lines = NUMBERED.splitlines(keepends=True)
    changed = [lines[0].replace("compute", "evaluate"), *lines[1:9], "# ... existing code ...\n", *lines[12:]]
    one = stream(NUMBERED)
    one.push("".join(changed) + "````")
    assert one.hunks == [Hunk(0, 1, "statement_1 = evaluate(1)\n")]
    with pytest.raises(EditError, match="part of the file"):
        one.finish()


@pytest.mark.parametrize("kept", [range(30, 50), range(20), range(10, 40), [0, *range(100, 250)], range(1, 9)])
def test_a_fragment_of_the_file_deletes_nothing(kept):
    """Thirty of six hundred lines, or fifty, are no edit of the file."""
    text = "".join(f"statement_{n} = compute({n})\n" for n in range(600))
    one = stream(text)
    one.push("".join(f"statement_{n} = compute({n})\n" for n in kept) + "````")
    assert one.hunks == []
    with pytest.raises(EditError, match="part of the file"):
        one.finish()


README = "# Tool\n\n```bash\nmake run\n```\n\n````md\n```json\n{}\n```\n````\n\n=======\nThe end of this file.\n"


@pytest.mark.parametrize(
    "answer", ["{}`````", "{}```", "{}`````\nDone.", "{}", "Here it is:\n\n```markdown\n{}```\nDone."]
)
def test_fences_are_neither_lost_nor_added(answer):
    """The blocks of a document stay, no wrapper gets in, and nothing is cut at a backtick."""
    done = edited(README, answer.format(README.replace("run", "start")), size=5)
    assert done.text == README.replace("run", "start")
    assert done.hunks == [Hunk(3, 4, "make start\n")]


TWICE = "[north]\nrate = 4\nlimit = 90\n\n[south]\nrate = 4\nlimit = 90\n"


def test_where_the_same_text_stands_twice_the_right_place_changes():
    """In the whole file, and in the lines of one block."""
    south = TWICE[: TWICE.index("[south]")] + "[south]\nrate = 4\nlimit = 75\n"
    expected = [Hunk(6, 7, "limit = 75\n")]
    assert edited(TWICE, south + "````").hunks == expected
    assert edited(TWICE, "[south]\nrate = 4\nlimit = 75\n````", (4, 7)).hunks == expected
    assert edited(TWICE, "limit = 75\n````", (6, 7)).hunks == expected


@given(
    before=st.lists(st.tuples(WORDS, ENDINGS), max_size=4),
    region=st.lists(st.tuples(WORDS, ENDINGS), min_size=1, max_size=4),
    after=st.lists(st.tuples(WORDS, ENDINGS), max_size=4),
    answer=st.lists(WORDS, max_size=6),
)
def test_only_the_given_lines_change(before, region, after, answer):
    """Whatever is answered about some lines of a file, all bytes before and behind them stay."""
    parts = ["".join(map("".join, part)) for part in (before, region, after)]
    source = SourceText.from_text("".join(parts))
    edges = [len(SourceText.from_text("".join(parts[:n])).lines) for n in range(4)]
    assume(edges[3] == sum(map(len, (before, region, after))))  # no CR and LF of two lines made one
    one = stream("".join(parts), (edges[1], edges[2]))
    one.push("".join(f"{line}\n" for line in answer) + "````")
    with suppress(EditError):
        one.finish()
    result = apply_hunks(source, one.hunks)
    assert result.startswith(parts[0])
    assert result.endswith(parts[2])


def test_bytes_outside_the_edit_stay() -> None:
    """Tabs, trailing space, mixed line ends, a byte-order mark and a missing final newline, in a file edited in three
    places."""
    text = "\ufeffa = 1  \r\n\tb = 2\r\nc = '😀'\n\td = 4\rfinal = 5\r\n\r\nlast"
    new = "a = 1  \n\tb = 20\nc = '😀'\nadded = 1\n\td = 4\nfinal = 5\n\nlast = '👩‍👧'\n"
    done = edited(text, new + "````", size=3)
    assert done.text == ("\ufeffa = 1  \r\n\tb = 20\r\nc = '😀'\nadded = 1\n\td = 4\rfinal = 5\r\n\r\nlast = '👩‍👧'")


@pytest.mark.parametrize("answer", ["\ufeffa = 2\r\nb = 3\r\n````", "a = 2\nb = 3\n````", "a = 2\r\nb = 3\r\n````\r\n"])
@pytest.mark.parametrize("text", ["\ufeffa = 1\r\nb = 3\r\n", "a = 1\nb = 3\n"])
def test_marks_and_line_ends_of_the_answer_do_not_matter(text: str, answer: str) -> None:
    """The file's do: no mark is added or doubled, and no CR."""
    assert edited(text, answer).text == text.replace("1", "2")


def test_each_hunk_counts_lines_of_the_file_before() -> None:
    """Seven hundred lines, changed in many places, with insertions and deletions between."""
    lines = [f"value_{n} = {n}\n" for n in range(700)]
    new: Sequence[str] = [
        *itertools.chain(*([f"added_{n} = {n}\n", line] if n % 50 == 7 else [line] for n, line in enumerate(lines)))
    ]
    new = [line.replace("= 3", "= -3") for line in new if not line.startswith("value_12")]
    done = edited("".join(lines), "".join(new) + "````", size=50)
    assert done.text == "".join(new)
    for hunk in done.hunks:
        touched = "".join(lines[hunk.start : hunk.end])
        assert "value_12" in touched or "= 3" in touched or "added" in hunk.text


@pytest.mark.parametrize(("gone", "told"), [(range(10, 15), True), (range(10, 50), False), (range(5), False)])
def test_deletions_that_may_be_omissions_wait_until_half_of_a_long_file_has_come(gone: range, told: bool) -> None:
    """The beginning of the file, or many lines."""
    lines = [f"statement_{n} = compute({n})\n" for n in range(200)]
    new = [line for n, line in enumerate(lines) if n not in gone]
    one = stream("".join(lines))
    assert bool(one.push("".join(new[:95]))) == told
    assert one.line == 95 + len(gone)
    one.push("".join(new[95:101]))
    assert one.hunks == [Hunk(gone.start, gone.stop, "")]

"""New versions as hunks: bytes in, bytes out."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup_spec.text.hunks import Hunk, HunkStream, apply_hunks, rewritten
from lookup_spec.text.lines import SourceText

MIXED = b"\xef\xbb\xbfa = 1\r\nb = 2\r\nc = 3\nd = 4"
LINES = st.lists(st.sampled_from(["a", "b", "", "\tc ", "\u2028x\x0c"]), max_size=8)
ENDINGS = st.sampled_from(["\n", "\r\n", "\r"])


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        ("a = 1\nb = 20\nc = 3\nd = 4", b"\xef\xbb\xbfa = 1\r\nb = 20\r\nc = 3\nd = 4"),
        ("a = 1\nb = 2\nb2 = 5\nc = 3\nd = 4", b"\xef\xbb\xbfa = 1\r\nb = 2\r\nb2 = 5\r\nc = 3\nd = 4"),
        ("a = 1\nb = 2\nc = 3\nd = 4\ne = 5", b"\xef\xbb\xbfa = 1\r\nb = 2\r\nc = 3\nd = 4\r\ne = 5"),
        ("a = 1\nb = 2\nc = 3\nd = 40", b"\xef\xbb\xbfa = 1\r\nb = 2\r\nc = 3\nd = 40"),
        ("z\na = 1\nb = 2\nc = 3\nd = 4", b"\xef\xbb\xbfz\r\na = 1\r\nb = 2\r\nc = 3\nd = 4"),
        ("c = 3\nd = 4", b"\xef\xbb\xbfc = 3\nd = 4"),
        ("a = 1\r\nb = 2\r\nc = 3\r\nd = 4", MIXED),
        ("\ufeffa = 1\nb = 2\nc = 3\nd = 4", MIXED),
        ("", b"\xef\xbb\xbf"),
    ],
)
def test_mixed_endings_and_bom_survive_an_edit(new, expected):
    """Unchanged lines keep their own endings, new ones take their neighbour's, and there is one mark."""
    assert rewritten(SourceText.from_bytes(MIXED), new) == expected.decode()


@given(data=st.lists(st.characters(exclude_categories=["Cs"], exclude_characters="\0") | ENDINGS).map("".join))
def test_reading_and_restoring_is_the_identity(data):
    """A file whose text is not changed comes back byte for byte, and the model's text has no CR."""
    source = SourceText.from_text(data)
    assert rewritten(source, source.text) == data
    assert source.original == data
    assert "\r" not in source.text


@given(old=LINES, new=LINES, ending=ENDINGS, final=st.booleans())
def test_a_file_of_one_kind_stays_of_that_kind(old, new, ending, final):
    """Where all lines end alike, so do all lines of any edited version."""
    source = SourceText.from_text("".join(line + ending for line in [*old, "x"]))
    text = "\n".join(new) + ("\n" if final and new else "")
    assert rewritten(source, text) == text.replace("\n", ending)


@given(
    head=st.lists(st.tuples(st.sampled_from("abc"), ENDINGS), max_size=5),
    tail=st.lists(st.tuples(st.sampled_from("abc"), ENDINGS), max_size=5),
    removed=st.lists(st.tuples(st.sampled_from("de"), ENDINGS), max_size=3),
    added=st.lists(st.sampled_from("fg"), max_size=3),
)
def test_bytes_outside_the_change_stay(head, tail, removed, added):
    """Replacing a stretch of lines leaves all bytes before and after it as they were."""
    before, after = "".join(map("".join, head)), "".join(map("".join, tail))
    source = SourceText.from_text(before + "".join(map("".join, removed)) + after)
    new = "".join(f"{line}\n" for line in [*(a for a, _ in head), *added, *(a for a, _ in tail)])
    restored = rewritten(source, new)
    assert restored.startswith(before)
    assert restored.endswith(after)
    assert restored.replace("\r\n", "\n").replace("\r", "\n") == new


@given(
    old=st.lists(st.tuples(st.sampled_from(["a", "b", ""]), ENDINGS), max_size=6),
    new=st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=6),
)
def test_any_edit_of_any_mixture_has_the_lines_of_the_new_text(old, new):
    """Whatever the endings, the restored file has exactly the new text's lines."""
    text = "".join(f"{line}\n" for line in new)
    restored = rewritten(SourceText.from_text("".join(map("".join, old))), text)
    assert SourceText.from_text(restored).text == text


@pytest.mark.parametrize(
    "data",
    [
        b"a\nb\n",
        b"a\rb\rc",
        b"a  \n\t b\t\n",
        b"all:\n\tmake x\n",
        b"",
        b"\n",
        b"\xef\xbb\xbf",
        b"\r\n",
        b"\n\n\n",
        b"a\r\r\nb",
    ],
)
def test_files_of_every_kind_come_back(data):
    """Tabs, trailing spaces, lone CR, empty files and files of one newline come back byte for byte."""
    source = SourceText.from_bytes(data)
    assert rewritten(source, source.text).encode() == data


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        ("a\nx\nb\nc\n", "a\nx\nb\r\nc\n"),
        ("a\nb\nx\ny\nc\n", "a\nb\r\nx\r\ny\r\nc\n"),
        ("a\nb\nc\nx\n", "a\nb\r\nc\nx\n"),
        ("a\nx\ny\nc\n", "a\nx\r\ny\r\nc\n"),
        ("x\nb\nc\n", "x\nb\r\nc\n"),
    ],
)
def test_an_added_line_ends_like_the_line_above(new, expected):
    """Between lines of different endings an added or changed line takes that of its own neighbour."""
    assert rewritten(SourceText.from_text("a\nb\r\nc\n"), new) == expected


SOURCES = st.lists(st.tuples(st.sampled_from(["a", "b", "", "longer = line", "def other():"]), ENDINGS), max_size=9)


@given(
    old=SOURCES,
    new=SOURCES,
    bom=st.booleans(),
    ended=st.tuples(st.booleans(), st.booleans()),
    window=st.tuples(st.integers(0, 9), st.integers(0, 9)),
    cuts=st.lists(st.integers(0, 80), max_size=6),
)
def test_hunks_ascend_and_stay_within_their_lines(old, new, *, bom, ended, window, cuts):
    """However the new version is cut, the hunks are the same; they are disjoint and within the lines that it
    replaces, and all bytes outside those lines stay."""
    texts = ["".join(map("".join, lines)) for lines in (old, new)]
    before, after = (text if keep else text.rstrip("\r\n") for text, keep in zip(texts, ended, strict=True))
    source = SourceText.from_text("\ufeff" * bom + before)
    start, end = sorted(min(edge, len(source.lines)) for edge in window)
    edges = sorted({0, len(after), *(min(cut, len(after)) for cut in cuts)})
    stream, whole = HunkStream(source, start, end), HunkStream(source, start, end)
    pieces = [stream.push(after[a:b]) for a, b in itertools.pairwise(edges)]
    hunks = [*itertools.chain(*pieces), *stream.finish()]
    assert hunks == [*whole.push(after), *whole.finish()]
    places = [start, *(edge for hunk in hunks for edge in (hunk.start, hunk.end)), end]
    assert places == sorted(places)
    result = apply_hunks(source, hunks)
    assert result.startswith("\ufeff" * bom + source.stretch(0, start))
    assert result.endswith(source.stretch(end, len(source.lines)))


def test_a_hunk_has_the_line_ends_of_its_file():
    """Positions are those of the file before, whatever came earlier."""
    source = SourceText.from_text("\ufeffone = 1\r\ntwo = 2\r\n\tthree = 3\r\nfour = 4")
    stream = HunkStream(source)
    hunks = [*stream.push("zero = 0\none = 1\ntwo = 2\n\tthree = 3\nfour = 4\nfive = 5"), *stream.finish()]
    assert hunks == [Hunk(0, 0, "zero = 0\r\n"), Hunk(3, 4, "four = 4\r\nfive = 5")]


def test_a_hunk_is_told_once_its_end_is_sure():
    source = SourceText.from_text("first = 1\nsecond = 2\nlast_one = 3\n")
    stream = HunkStream(source)
    assert stream.push("first = 1\nsecond = 20\nlast_") == []
    assert (stream.passed, stream.pending) == (1, ("second = 20\n",))
    assert stream.push("one = 3") == []
    assert stream.push("\n") == [Hunk(1, 2, "second = 20\n")]
    assert (stream.passed, stream.pending) == (3, ())
    assert stream.finish() == []


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_an_empty_file_gets_the_line_ends_it_is_said_to_have(newline):
    source = SourceText.from_text("", newline)
    assert rewritten(source, "a\nb\n") == f"a{newline}b{newline}"

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup_spec.errors import EditError
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
    assert SourceText.from_bytes(MIXED).restore(new) == expected


@given(data=st.lists(st.characters(exclude_categories=["Cs"], exclude_characters="\0") | ENDINGS).map("".join))
def test_reading_and_restoring_is_the_identity(data):
    """A file whose text is not changed comes back byte for byte, and the model's text has no CR."""
    source = SourceText.from_bytes(data.encode())
    assert source.restore(source.text) == data.encode()
    assert "\r" not in source.text


@given(old=LINES, new=LINES, ending=ENDINGS, final=st.booleans())
def test_a_file_of_one_kind_stays_of_that_kind(old, new, ending, final):
    """Where all lines end alike, so do all lines of any edited version."""
    source = SourceText.from_text("".join(line + ending for line in [*old, "x"]))
    text = "\n".join(new) + ("\n" if final and new else "")
    assert source.restore_text(text) == text.replace("\n", ending)


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
    restored = source.restore_text(new)
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
    restored = SourceText.from_text("".join(map("".join, old))).restore_text(text)
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
    assert source.restore(source.text) == data


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"a\0b", "binary"), ("é".encode("latin-1"), "byte 0xE9 at offset 0"), ("a".encode("utf-16"), "UTF-8")],
)
def test_what_is_not_text_is_refused(data, reason):
    """Binary files and other encodings are refused with the reason."""
    with pytest.raises(EditError, match=reason):
        SourceText.from_bytes(data)


@pytest.mark.parametrize(
    ("data", "eol", "final"),
    [
        (b"a\n", "lf", True),
        (b"a\r\nb", "crlf", False),
        (b"a\rb\r", "cr", True),
        (MIXED, "mixed", False),
        (b"", "lf", True),
        (b"a", "lf", False),
    ],
)
def test_the_kind_of_line_end_is_told(data, eol, final):
    """The style and the presence of a final newline can be asked for."""
    source = SourceText.from_bytes(data)
    assert (source.eol, source.final_newline) == (eol, final)


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
    assert SourceText.from_text("a\nb\r\nc\n").restore_text(new) == expected

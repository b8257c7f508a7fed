from __future__ import annotations

import pytest

from lookup_spec.errors import EditError
from lookup_spec.text.lines import SourceText

MIXED = b"\xef\xbb\xbfa = 1\r\nb = 2\r\nc = 3\nd = 4"


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

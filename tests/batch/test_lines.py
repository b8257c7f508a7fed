"""Lines of input, and what requests they hold."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup_spec.batch.lines import Line, read_lines
from lookup_spec.batch.request import BadLine, Request, parse

BODY = {"messages": []}


def line(value: object) -> Line:
    return Line(3, json.dumps(value).encode())


@given(st.lists(st.sampled_from([b"", b" ", b"a", b"bb", b"ccc", b"\t", b"dddddd"])), st.sampled_from([b"\n", b"\r\n"]))
def test_lines_are_those_that_split_finds(texts: list[bytes], end: bytes) -> None:
    """With either line end, with and without the last one, with and without a byte-order mark; blank ones count, but
    are left out; of long ones only the beginning is kept."""
    for last in (b"", end):
        for mark in (b"", b"\xef\xbb\xbf"):
            found = list(read_lines(io.BytesIO(mark + end.join(texts) + last), 4))
            long = [number for number, text in enumerate(texts, 1) if len(text + end) > 5]
            expected = [(number, text) for number, text in enumerate(texts, 1) if text.strip()]
            assert [one.number for one in found] == [number for number, _ in expected]
            for one, (number, text) in zip(found, expected, strict=True):
                if one.whole:
                    assert one.data == text
                else:
                    assert number in long or mark
                    assert text.startswith(one.data)


def test_a_request_keeps_its_place_and_its_name() -> None:
    found = parse(line({"custom_id": "ä ✅", "method": "POST", "url": "/v1/x", "body": BODY}))
    assert found == Request(3, "ä ✅", "/v1/x", BODY)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b'{"custom_id": "x", broken', "invalid_json"),
        (b'{"custom_id": "\xe9"}', "invalid_json"),
        (b"[" * 100_000, "invalid_json"),
        (b"[1, 2]", "invalid_line"),
        (b'{"url": "/v1/x", "body": {}}', "invalid_custom_id"),
        (b'{"custom_id": "", "url": "/v1/x", "body": {}}', "invalid_custom_id"),
        (b'{"custom_id": 7, "url": "/v1/x", "body": {}}', "invalid_custom_id"),
        (b'{"custom_id": "\\ud800", "url": "/v1/x", "body": {}}', "invalid_custom_id"),
    ],
)
def test_a_line_without_a_name_says_what_is_wrong_with_it(data: bytes, code: str) -> None:
    found = parse(Line(3, data))
    assert isinstance(found, BadLine)
    assert (found.line, found.code) == (3, code)
    assert found.message.startswith("Line 3 ")


@pytest.mark.parametrize("change", [{"method": "GET"}, {"url": None}, {"body": None}, {"body": []}])
def test_a_request_that_asks_nothing_keeps_its_name(change: dict[str, object]) -> None:
    found = parse(line({"custom_id": "x", "method": "POST", "url": "/v1/x", "body": BODY, **change}))
    assert isinstance(found, Request)
    assert found.problem


def test_a_digest_changes_with_all_that_is_asked_and_with_nothing_else() -> None:
    one = Request(3, "x", "/v1/x", {"a": 1, "b": 2})
    assert one.digest == Request(9, "x", "/v1/x", {"b": 2, "a": 1}).digest
    others = [
        Request(3, "y", "/v1/x", one.body),
        Request(3, "x", "/v1/y", one.body),
        Request(3, "x", "/v1/x", {"a": 1}),
    ]
    assert len({one.digest, *(other.digest for other in others)}) == 4
    assert one.seed(0) == one.seed(0) != one.seed(1)

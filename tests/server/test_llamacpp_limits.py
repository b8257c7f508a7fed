"""What ends an answer besides its tokens and stop strings."""

from __future__ import annotations

from lookup_server.llamacpp.limits import Limits

from lookup_spec.engine.session import Piece
from lookup_spec.stats import Stats


def piece(text: str, seconds: float, **more: object) -> Piece:
    return Piece(text, (1,), ("",), (), Stats(decode_seconds=seconds), **more)  # type: ignore[arg-type]


def test_an_answer_over_its_time_ends_with_its_line() -> None:
    limit = Limits(0, 250)
    pieces = [limit(piece("a = 1\nb", 0.1)), limit(piece(" = 2", 0.3)), limit(piece("\nc = 3\n", 0.4))]
    assert [one.text for one in pieces] == ["a = 1\nb", " = 2", ""]
    assert [one.finish_reason for one in pieces] == [None, None, "length"]


def test_an_answer_in_time_goes_on() -> None:
    assert Limits(0, 250)(piece("a\nb\n", 0.2)).finish_reason is None
    assert Limits(0, -1)(piece("a\nb\n", 9.0)).finish_reason is None


def test_a_line_indented_too_little_ends_the_answer_before_it() -> None:
    limit = Limits(4, 0)
    assert limit(piece("urn a\n", 0.0)).text == "urn a"
    last = limit(piece("    b\nc", 0.0))
    assert (last.text, last.finish_reason) == ("\n    b", "length")


def test_what_was_held_back_comes_with_the_end() -> None:
    limit = Limits(4, 0)
    limit(piece("a\n  ", 0.0))
    last = limit(piece("", 0.0, finish_reason="stop"))
    assert (last.text, last.finish_reason) == ("\n  ", "stop")

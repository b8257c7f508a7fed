from __future__ import annotations

import re
from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from lookup_spec.propose.segment import Segment
from lookup_spec.propose.shaped import LINE, NAME, NUMBER, SPACE, Shaped, ShapedSegment

pieces_of_texts = st.lists(st.text("aé1_ \n\t(日👩\ufffd", max_size=4), max_size=20)


def slow_words(text: str) -> list[str]:
    """Character by character: a word goes on while its kind of character does."""
    words: list[str] = []
    for char in text:
        last = words[-1] if words else ""
        if last and (
            (re.match(r"\w", last) and re.match(r"\w", char))
            or (last[0] == "\n" and char.isspace())
            or (last[0].isspace() and last[0] != "\n" and char.isspace() and char != "\n")
        ):
            words[-1] += char
        else:
            words.append(char)
    return words


@given(pieces_of_texts)
def test_words_are_as_found_character_by_character(pieces: list[str]) -> None:
    """Names, numbers, line ends with indentation and space are words; other characters stand alone."""
    shaped = Shaped(pieces)
    assert shaped.words == slow_words("".join(pieces))
    assert len(shaped.shapes) == len(shaped)


@given(pieces_of_texts, st.integers(0, 20))
def test_a_text_may_come_in_parts(pieces: list[str], cut: int) -> None:
    """Taking pieces in one after another gives what taking them all at once does."""
    whole, parts = Shaped(pieces), Shaped(pieces[:cut])
    for piece in pieces[cut:]:
        parts.extend([piece])
    assert (parts.words, parts.shapes) == (whole.words, whole.shapes)
    places = range(len(whole) + 1)
    assert [parts.seam(n, n + 3) for n in places] == [whole.seam(n, n + 3) for n in places]


@given(pieces_of_texts.filter(any), st.data())
def test_seams_and_words_as_counted(pieces: list[str], data: st.DataObject) -> None:
    """A seam is the first of the words that begins where a token does; tokens and words find each other."""
    pieces = [piece for piece in pieces if piece]
    shaped = Shaped(pieces)
    token_starts = [0, *accumulate(map(len, pieces))]
    word_starts = [0, *accumulate(map(len, shaped.words))][:-1]
    start = data.draw(st.integers(0, len(shaped)))
    end = data.draw(st.integers(start, len(shaped) + 3))
    seams = [n for n in range(start, min(end, len(shaped))) if word_starts[n] in token_starts]
    expected = (seams[0], token_starts.index(word_starts[seams[0]])) if seams else (len(shaped), len(pieces))
    assert shaped.seam(start, end) == expected
    token = data.draw(st.integers(0, len(pieces)))
    assert shaped.word(token) == sum(place < token_starts[token] for place in word_starts)


def test_shapes_forget_names() -> None:
    """Names are alike, numbers are alike, indentation does not matter; all else does."""
    one, other = Shaped(["def f(x1):\n", "    return 10"]), Shaped(["if g(y):\n\n\treturn 2"])
    assert one.shapes == other.shapes
    assert one.shapes[:3] == [NAME, SPACE, NAME]
    assert one.shapes[-4:] == [LINE, NAME, SPACE, NUMBER]
    assert Shaped(["a+b"]).shapes != Shaped(["a-b"]).shapes


def test_a_segment_is_indexed_by_its_shapes() -> None:
    """What never changes can be looked up by shape, and tells its size."""
    segment = ShapedSegment(["a = 1\n", "b = 2\n", "c"])
    places = Segment(segment.shapes).matches(segment.shapes[:5])
    assert segment.index.matches(segment.shapes[:5]) == places
    assert segment.nbytes > segment.index.nbytes

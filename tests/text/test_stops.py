from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup_spec.text.stops import StopScanner

LETTERS = st.text("abc\n", max_size=30)
STOPS = st.lists(st.text("abc\n", min_size=1, max_size=5), max_size=4)


def slow(text: str, stops: list[str]) -> tuple[str, str | None, str]:
    """Letter by letter: what may be shown, the stop string found, and what must still be held back."""
    for end in range(1, len(text) + 1):
        found = [stop for stop in stops if text[:end].endswith(stop)]
        if found:
            longest = max(found, key=len)
            return text[: end - len(longest)], longest, ""
    for start in range(len(text) + 1):
        if any(stop.startswith(text[start:]) and stop != text[start:] for stop in stops) or start == len(text):
            return text[:start], None, text[start:]
    raise AssertionError


def pieces(text: str, cuts: list[int]) -> list[str]:
    edges = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[a:b] for a, b in itertools.pairwise(edges)]


@given(text=LETTERS, stops=STOPS, cuts=st.lists(st.integers(0, 30), max_size=8))
def test_the_scanner_does_what_a_search_of_the_whole_text_does(text, stops, cuts):
    """Shown text, stop string and held-back tail equal those of a naive search, however the text is cut."""
    scanner = StopScanner(stops)
    shown = "".join(scanner.push(piece) for piece in pieces(text, cuts))
    safe, stop, held = slow(text, stops)
    assert (shown, scanner.stop, scanner.flush()) == (safe, stop, held)


@given(text=LETTERS, stops=STOPS)
def test_every_prefix_shows_all_that_is_safe(text, stops):
    """After each letter exactly the certain text has been shown: no letter early, none late."""
    scanner, shown = StopScanner(stops), ""
    for end, letter in enumerate(text, 1):
        shown += scanner.push(letter)
        assert shown == slow(text[:end], stops)[0]


def test_of_two_stop_strings_the_first_to_complete_wins():
    """A short stop string inside a longer one that started earlier ends the answer first."""
    scanner = StopScanner(["abcd", "bc"])
    assert scanner.push("xabcd") == "xa"
    assert scanner.stop == "bc"


def test_of_two_that_complete_together_nothing_leaks():
    """Where two stop strings end at the same letter, the text before the longer one remains."""
    scanner = StopScanner(["c", "abc"])
    assert scanner.push("xab") + scanner.push("c") == "x"
    assert scanner.stop == "abc"


def test_nothing_passes_after_a_stop():
    """What comes after a stop string is ignored, and there is nothing to flush."""
    scanner = StopScanner(["."])
    assert (scanner.push("a.b"), scanner.push("c"), scanner.flush()) == ("a", "", "")


@pytest.mark.parametrize("ending", ["read write close", "read write close\nexi"])
def test_a_held_tail_comes_out_at_the_end(ending):
    """A tail that could have become a stop string is delivered when the answer ends otherwise."""
    scanner = StopScanner(["close\nexit"])
    assert scanner.push(ending) == "read write "
    assert scanner.flush() == ending.removeprefix("read write ")

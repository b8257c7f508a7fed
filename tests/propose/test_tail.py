from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lookup_spec.propose.tail import Tail

pieces = st.lists(st.lists(st.integers(0, 2), max_size=12), max_size=8)


@given(pieces, st.integers(0, 9))
def test_places_equal_brute_force(pieces: list[list[int]], most: int) -> None:
    """The chain gives the latest earlier places of the last token, most recent first, and tells those of the last
    two."""
    tail = Tail()
    ids: list[int] = []
    for piece in pieces:
        tail.extend(piece)
        ids += piece
        assert len(tail) == len(ids)
        single = [place + 1 for place in range(len(ids) - 1) if ids[place] == ids[-1]][::-1]
        pairs = [place for place in single if place > 1 and ids[place - 2] == ids[-2]]
        assert tail.places(most) == single[:most]
        assert tail.of_pair(single) == pairs


def test_a_long_repetition_is_followed_only_as_far_as_wanted() -> None:
    """In 64,000 equal tokens the first few places come without walking the rest."""
    tail = Tail()
    tail.extend([9] * 64_000)
    assert tail.places(3) == [63_999, 63_998, 63_997]
    assert tail.of_pair(tail.places(2)) == [63_999, 63_998]
    assert tail.places(0) == []

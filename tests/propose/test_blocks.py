from __future__ import annotations

from itertools import accumulate, pairwise

from hypothesis import given
from hypothesis import strategies as st

from lookup_spec.propose.blocks import MOST, blocks

lengths = st.lists(st.sampled_from([0, 1, 10, 500, 1023, 1024, 3000, 40_000]), max_size=60)


def edges(lengths: list[int], start: int = 0) -> list[int]:
    return list(accumulate(lengths, initial=start))


@given(lengths, st.integers(0, 100))
def test_blocks_are_whole_stretches_in_order(lengths: list[int], start: int) -> None:
    """Blocks cover all stretches, once, in order, and no block ends inside one."""
    cuts = edges(lengths, start)
    found = blocks(cuts)
    assert [token for a, b in found for token in (a, b)] == sorted(token for a, b in found for token in (a, b))
    assert sum(b - a for a, b in found) == cuts[-1] - cuts[0]
    assert all(a < b and a in cuts and b in cuts for a, b in found)
    assert all(one[1] == other[0] for one, other in pairwise(found))


@given(lengths)
def test_there_are_few_blocks(lengths: list[int]) -> None:
    """However many stretches, their number is bounded."""
    assert len(blocks(edges(lengths))) <= 2 * MOST + 1


@given(lengths, st.integers(1, 900))
def test_what_is_added_at_the_end_changes_the_end_only(lengths: list[int], new: int) -> None:
    """One more message leaves all blocks but the last as they were, unless the context has just doubled."""
    before, after = blocks(edges(lengths)), blocks(edges([*lengths, new]))
    total = sum(lengths)
    if total == 0 or (total - 1) // (1024 * MOST) == 0 == (total + new - 1) // (1024 * MOST):
        assert after[: max(0, len(before) - 1)] == before[:-1]


def test_long_documents_stand_alone() -> None:
    """A long document is a block of its own, whatever stands before and behind it."""
    for head in ([], [10], [10, 500]):
        cuts = edges([*head, 2000, 30])
        assert (sum(head), sum(head) + 2000) in blocks(cuts)


def test_nothing_has_no_blocks() -> None:
    """Without edges, or with nothing between them, there is nothing to index."""
    assert blocks([]) == blocks([5]) == blocks([5, 5]) == []

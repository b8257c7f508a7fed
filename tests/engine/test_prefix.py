"""What is kept of ended texts, against a slow twin that keeps the texts themselves."""

from __future__ import annotations

import pytest
from fakes.scripted import TokenCache
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup_spec.engine.prefix import PrefixCache, as_ids, begin_alike, common_prefix

texts = st.lists(st.integers(0, 2), min_size=1, max_size=12)
tenants = st.sampled_from(["", "a", "b"])
puts = st.lists(st.tuples(tenants, texts), max_size=12)


def keep(kept: PrefixCache, tenant: str, text: list[int]) -> TokenCache:
    cache = TokenCache(len(text))
    cache.tokens = list(text)
    kept.put(tenant, as_ids(text), cache)
    return cache


def found(kept: PrefixCache, tenant: str, text: list[int]) -> list[int]:
    return [token for rows in kept.match(tenant, as_ids(text)) for token in rows.tokens]


def shared(one: list[int], other: list[int]) -> int:
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


@given(texts, texts)
def test_the_common_prefix_is_what_both_begin_with(one, other):
    assert common_prefix(as_ids(one), as_ids(other)) == shared(one, other)
    for size in range(1, 12):
        assert begin_alike(as_ids(one), as_ids(other), size) == (shared(one, other) >= size)


@given(puts, tenants, texts)
def test_with_room_enough_the_longest_common_prefix_is_found(before, tenant, text):
    """Of the tenant's own texts, whatever was put in; each stretch is held once."""
    kept = PrefixCache(1000)
    for owner, old in before:
        keep(kept, owner, old)
    own = [old for owner, old in before if owner == tenant]
    longest = max((shared(old, text) for old in own), default=0)
    assert found(kept, tenant, text) == text[:longest]
    assert kept.tokens == len({(owner, tuple(old[: n + 1])) for owner, old in before for n in range(len(old))})


@settings(max_examples=150)
@given(st.integers(0, 20), st.lists(st.tuples(tenants, texts, st.integers(0, 25)), max_size=14))
def test_within_any_bound_nothing_wrong_is_found(most, steps):
    """What is found is always a beginning of the text, the newest is there as far as there is room, and the bound
    holds after every step."""
    kept = PrefixCache(most)
    seen: dict[str, list[list[int]]] = {}
    for tenant, text, shrunk in steps:
        before = found(kept, tenant, text)
        assert before == text[: len(before)]
        assert len(before) <= max((shared(old, text) for old in seen.get(tenant, [])), default=0)
        cache = keep(kept, tenant, text)
        assert (cache.length, cache.capacity) == (0, 0)
        seen.setdefault(tenant, []).append(text)
        assert found(kept, tenant, text) == text[:most]
        assert kept.tokens <= most
        kept.shrink(shrunk)
        assert kept.tokens <= shrunk
    kept.shrink(0)
    assert not kept.tokens
    assert not any(found(kept, tenant, text) for tenant, old in seen.items() for text in old)


def test_the_document_outlives_what_followed_it():
    """The end that was not used for longest goes first; what new texts begin with stays."""
    document, kept = [1] * 10, PrefixCache(20)
    for n in range(2, 8):
        keep(kept, "", [*document, n, n, n, n])
        assert found(kept, "", [*document, 0]) == document
    assert found(kept, "", [*document, 7, 7, 7, 7]) == [*document, 7, 7, 7, 7]
    assert found(kept, "", [*document, 2]) == document


@pytest.mark.parametrize("looked_at", [0, 1])
def test_looking_keeps(looked_at):
    """A text that was asked for is kept rather than one that was not."""
    old, kept = [[1] * 5, [2] * 5], PrefixCache(10)
    for text in old:
        keep(kept, "", text)
    found(kept, "", old[looked_at])
    keep(kept, "", [3] * 5)
    assert [len(found(kept, "", text)) for text in old] == [5 * (looked_at == n) for n in range(2)]

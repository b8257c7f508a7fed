"""Masks against slow twins, attention against its definition, and what is refused."""

from __future__ import annotations

import math
from itertools import accumulate

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from lookup_spec.errors import ModelError
from lookup_spec.model.attention import Packed, Slice, ancestors, packed_attention
from lookup_spec.model.cache import KVCache


@st.composite
def forests(draw, most=24):
    """Parents of some rows; -1 directly follows the cache."""
    return [draw(st.integers(-1, row - 1)) for row in range(draw(st.integers(1, most)))]


def line_of(parents, row):
    """A row and all its ancestors, by following the parents."""
    line = set()
    while row >= 0:
        line.add(row)
        row = parents[row]
    return line


def depths_of(parents):
    return [len(line_of(parents, row)) - 1 for row in range(len(parents))]


@given(forests())
def test_a_row_sees_itself_and_its_ancestors(parents):
    """``ancestors`` is what following the parents gives."""
    seen = ancestors(parents)
    for row in range(len(parents)):
        assert set(np.flatnonzero(seen[row])) == line_of(parents, row)


def cache_of(length, heads=1, dim=2):
    cache = KVCache()
    if length:
        cache.write(0, torch.zeros(heads, length, dim), torch.zeros(heads, length, dim))
        cache.commit(range(length))
    return cache


@settings(deadline=None)
@given(forests(), st.integers(0, 12), st.one_of(st.none(), st.integers(1, 9)))
def test_a_window_counts_positions_and_not_rows(parents, cached, window):
    """A row sees cached tokens and ancestors less than ``window`` positions back, wherever their rows lie."""
    depths = depths_of(parents)
    mask = Slice(cache_of(cached), 0, parents, depths).mask(window, 1, torch.float32, torch.device("cpu"))
    seen = np.ones((len(parents), cached + len(parents)), bool) if mask is None else mask.numpy() == 0
    assert mask is None or set(np.unique(mask.numpy())) <= {0.0, -np.inf}
    for row, depth in enumerate(depths):
        places = {column: column for column in range(cached)}
        places |= {cached + node: cached + depths[node] for node in line_of(parents, row)}
        near = {column for column, place in places.items() if window is None or cached + depth - place < window}
        assert set(np.flatnonzero(seen[row])) == near


def attended_by_hand(query, keys, values, *, scaling, softcap):
    """Attention of one row and head in float64, from the definition."""
    scores = [float(np.dot(query, key)) * scaling for key in keys]
    if softcap is not None:
        scores = [softcap * math.tanh(score / softcap) for score in scores]
    weights = np.exp(np.array(scores) - max(scores))
    return (weights / weights.sum()) @ values


@pytest.mark.parametrize("softcap", [None, 2.0])
@pytest.mark.parametrize("window", [None, 3])
@pytest.mark.parametrize("scaling", [None, 0.7])
def test_attention_is_what_its_definition_says(softcap, window, scaling):
    """Sessions with caches and trees of their own, few rows and many, shared key heads, values of another width."""
    rng = np.random.default_rng(0)
    heads, shared, dim, wide = 4, 2, 8, 6
    trees = [[-1, 0, 0, 1, 2], [-1, 0, 1], [*range(-1, 39)]]
    committed = [5, 0, 3]
    module = nn.Module()
    module.layer_idx = 0
    caches, olds = [], []
    for length in committed:
        cache = KVCache()
        old = rng.normal(size=(shared, length, dim)), rng.normal(size=(shared, length, wide))
        cache.write(0, *(torch.tensor(part, dtype=torch.float32) for part in old))
        cache.commit(range(length))
        caches.append(cache)
        olds.append(old)
    rows = sum(map(len, trees))
    query = rng.normal(size=(heads, rows, dim)) * 2
    key, value = rng.normal(size=(shared, rows, dim)), rng.normal(size=(shared, rows, wide))
    starts = [0, *accumulate(map(len, trees[:-1]))]
    slices = [
        Slice(cache, start, tree, depths_of(tree)) for cache, start, tree in zip(caches, starts, trees, strict=True)
    ]
    out, weights = packed_attention(
        module,
        *(torch.tensor(part, dtype=torch.float32)[None] for part in (query, key, value)),
        packed=Packed(slices),
        scaling=scaling,
        sliding_window=window,
        softcap=softcap,
    )
    assert weights is None
    assert out.shape == (1, rows, heads, wide)
    for (old_keys, old_values), start, tree in zip(olds, starts, trees, strict=True):
        cached, depths = old_keys.shape[1], depths_of(tree)
        keys = np.concatenate([old_keys, key[:, start : start + len(tree)]], axis=1)
        values = np.concatenate([old_values, value[:, start : start + len(tree)]], axis=1)
        for row, depth in enumerate(depths):
            places = {column: column for column in range(cached)}
            places |= {cached + node: cached + depths[node] for node in line_of(tree, row)}
            seen = [c for c, place in places.items() if window is None or cached + depth - place < window]
            for head in range(heads):
                group = head // (heads // shared)
                expected = attended_by_hand(
                    query[head, start + row],
                    keys[group, seen],
                    values[group, seen],
                    scaling=dim**-0.5 if scaling is None else scaling,
                    softcap=softcap,
                )
                np.testing.assert_allclose(out[0, start + row, head].numpy(), expected, atol=2e-6)


def attend(**arguments):
    """One row through the function, with further arguments."""
    module = nn.Module()
    module.layer_idx = 0
    row = torch.zeros(1, 1, 1, 2)
    packed = Packed([Slice(KVCache(), 0, [-1], [0])])
    return packed_attention(module, row, row, row, packed=packed, **arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"s_aux": torch.zeros(1)},
        {"position_bias": torch.zeros(1)},
        {"attention_mask": torch.zeros(1)},
        {"dropout": 0.1},
        {"is_causal": False},
        {"anything_new": 1},
    ],
)
def test_what_is_not_computed_is_refused(arguments):
    """An argument that would change the result is never ignored."""
    with pytest.raises(ModelError):
        attend(**arguments)


@pytest.mark.parametrize(
    "arguments", [{}, {"use_cache": False}, {"is_causal": True}, {"anything_new": None}, {"position_ids": 3}]
)
def test_what_changes_nothing_is_let_through(arguments):
    """Information and switched-off features are no reason to refuse a model."""
    out, _ = attend(**arguments)
    assert out.shape == (1, 1, 1, 2)

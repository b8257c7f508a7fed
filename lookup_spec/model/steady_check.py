"""Whether this machine's kernels give a row the same bits alone and in company."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lookup_spec.errors import ModelError
from lookup_spec.model.cache import BLOCK, KVCache
from lookup_spec.model.forward import PackedModel, Rows

_TAIL = 5  # tokens that are computed one by one, as a chain, and in a tree
_TEXT = BLOCK + 3  # they go over a block's edge


def check_steady(model: PackedModel) -> None:
    """Computes the end of one text in several ways, its beginning in pieces of several sizes, and compares logits.

    It takes about as long as a prompt of three blocks.

    Args:
        model: one that was made for strict mode.

    Raises:
        ModelError: a row differs.
    """
    generator = torch.Generator().manual_seed(0)
    text = torch.randint(model.vocab_size, (_TEXT,), generator=generator).tolist()
    ways = {
        "alone": _alone(model, text),
        "in a chain": _in_a_chain(model, text),
        "in company": _in_company(model, text),
    }
    for way, logits in ways.items():
        if not torch.equal(logits, ways["alone"]):
            error = float((logits - ways["alone"]).abs().max())
            raise ModelError(
                f"This machine's kernels compute rows of this model differently alone and {way}, by up to {error:.1e}, "
                "so that strict mode could not keep what it promises; turn it off."
            )


def _begin(model: PackedModel, text: Sequence[int], *pieces: int) -> KVCache:
    """All but the tail of a text in a new cache; what the pieces leave goes last."""
    cache = model.new_cache()
    for count in (*pieces, len(text) - _TAIL - sum(pieces)):
        ids = text[cache.length : cache.length + count]
        model.forward([Rows(cache, ids, range(-1, count - 1), count)])
        cache.commit(range(count))
    return cache


def _alone(model: PackedModel, text: Sequence[int]) -> Tensor:
    cache = _begin(model, text)
    rows = []
    for token in text[-_TAIL:]:
        rows += model.forward([Rows(cache, [token], [-1], 0)])
        cache.commit([0])
    return torch.cat(rows)


def _in_a_chain(model: PackedModel, text: Sequence[int]) -> Tensor:
    [rows] = model.forward([Rows(_begin(model, text, 1, 40), text[-_TAIL:], range(-1, _TAIL - 1), 0)])
    return rows


def _in_company(model: PackedModel, text: Sequence[int]) -> Tensor:
    """The right nodes hang on a branch behind a wrong chain, between other sessions' rows."""
    cache = _begin(model, text, 7)
    first, *others = text[-_TAIL:]
    wrong = [(token + 1) % model.vocab_size for token in others]
    count = len(others)
    tree = Rows(cache, [first, *wrong, *others], [-1, *range(count), 0, *range(count + 1, 2 * count)], 0)
    before = Rows(model.new_cache(), text[:11], range(-1, 10), 11)
    after = Rows(model.new_cache(), text[5:7], range(-1, 1), 0)
    _, rows, _ = model.forward([before, tree, after])
    return rows[[0, *range(count + 1, 2 * count + 1)]]

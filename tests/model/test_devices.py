"""Models that do not run on the CPU. Torch's meta device has shapes but no numbers, and refuses others' tensors."""

from __future__ import annotations

import copy

import pytest
import torch
from fakes.models import CONFIGS, VOCAB, WINDOW, tiny

from lookup_spec.model.forward import PackedModel, Rows

LONG = WINDOW + 3
LOOK_AT_NUMBERS = ("gpt-2", "experts")  # on their way through the model


@pytest.mark.parametrize("strict", [False, True], ids=["plain", "strict"])
@pytest.mark.parametrize("name", [name for name in CONFIGS if not any(kind in name for kind in LOOK_AT_NUMBERS)])
def test_a_pass_and_its_caches_stay_on_the_models_device(name: str, strict: bool) -> None:
    model = PackedModel(copy.deepcopy(tiny(name)).to("meta", torch.bfloat16), strict=strict)
    cache, other = model.new_cache(), model.new_cache()
    model.forward([Rows(cache, range(LONG), range(-1, LONG - 1), LONG)])
    cache.commit(range(LONG))
    other.append(cache.rows(0, LONG - 1).clone())
    first, second = model.forward([Rows(cache, (1, 2, 3, 4), (-1, 0, 0, 2), 0), Rows(other, (5,), (-1,), 0)])
    cache.commit((0, 2, 3))
    kept = cache.detach(0, LONG + 3)
    assert {logits.device.type for logits in (first, second)} == {"meta"}
    assert (first.shape, second.shape) == ((4, VOCAB), (1, VOCAB))
    assert {part.device.type for pair in kept.layers.values() for part in pair} == {"meta"}
    assert {part.shape[1] for pair in kept.layers.values() for part in pair} == {LONG + 3}


def test_a_tensor_of_another_device_would_be_noticed() -> None:
    there = torch.zeros(2, 2, device="meta")
    with pytest.raises(RuntimeError, match="device"):
        there + torch.zeros(2, 2)

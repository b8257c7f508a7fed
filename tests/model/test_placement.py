"""Names of devices and types, and what auto makes of them."""

from __future__ import annotations

import pytest
import torch

from lookup_spec.errors import ModelError
from lookup_spec.model import placement
from lookup_spec.model.placement import available_memory, choose_device, choose_dtype

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("features", "packs", "expected"),
    [
        (set(), False, torch.float32),
        ({"avx2", "avx512_f"}, False, torch.float32),
        ({"avx2", "avx512_f"}, True, torch.bfloat16),
        ({"avx512_bf16"}, False, torch.bfloat16),
        ({"amx_bf16"}, True, torch.bfloat16),
    ],
)
def test_auto_type_follows_the_processor(
    monkeypatch: pytest.MonkeyPatch, features: set[str], packs: bool, expected: torch.dtype
) -> None:
    """Auto is bfloat16 on processors with instructions for it, which emulation is not, or with packed weights."""
    monkeypatch.setattr(placement, "_cpu_features", lambda: features)
    monkeypatch.setattr(placement, "can_pack", lambda: packs)
    assert choose_dtype("auto", CPU) is expected


@pytest.mark.parametrize("name", ["bfloat16", "float16", "float32"])
def test_explicit_types_are_taken(name: str) -> None:
    """An explicit type is taken as it is."""
    assert choose_dtype(name, CPU) is getattr(torch, name)


def test_processor_features_are_found() -> None:
    """Some features of this processor are known by name."""
    assert placement._cpu_features() & {"avx", "avx2", "sse2", "asimd", "neon", "sve"}


@pytest.mark.parametrize("name", ["float64", "int8", "bf16", ""])
def test_unknown_types_are_refused(name: str) -> None:
    """Other names are refused with the list of those that exist."""
    with pytest.raises(ModelError, match="give auto, bfloat16, float16, float32"):
        choose_dtype(name, CPU)


@pytest.mark.parametrize("name", ["gpu", "tpu:0", "cuda:", "meta", ""])
def test_unknown_devices_are_refused(name: str) -> None:
    """Other devices are refused with the list of those that exist."""
    with pytest.raises(ModelError, match="give auto, cpu, cuda or mps"):
        choose_device(name)


def test_absent_devices_are_refused() -> None:
    """A device that this machine does not have is refused, not replaced."""
    with pytest.raises(ModelError, match=r"'cuda:99' is not available"):
        choose_device("cuda:99")


def test_memory_of_a_machine_is_known() -> None:
    """The memory that is left is a positive number of bytes, or unknown."""
    memory = available_memory(CPU)
    assert memory is None or memory > 0

"""Where a model runs, in what type of numbers, and how much memory is there for it."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import torch

from lookup_spec.errors import ModelError
from lookup_spec.model.half_linear import can_pack

DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}


def choose_device(name: str = "auto") -> torch.device:
    """The device of a name: ``auto`` (CUDA, else MPS, else CPU), ``cpu``, ``mps``, ``cuda`` or ``cuda:1``.

    Raises:
        ModelError: there is no such device here.
    """
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "mps", "cuda"):
        raise ModelError(f"There is no device {name!r}; give auto, cpu, cuda or mps.")
    present = {
        "cpu": 1,
        "mps": int(torch.backends.mps.is_available()),
        "cuda": torch.cuda.device_count() if torch.cuda.is_available() else 0,
    }[device.type]
    if (device.index or 0) >= present:
        raise ModelError(f"The device {name!r} is not available on this machine; give auto or cpu.")
    return device


def choose_dtype(name: str, device: torch.device) -> torch.dtype:
    """The type of a name; ``auto`` is bfloat16 where that is quick, be it that the hardware computes in it or that it
    computes in float32 from weights of half the size; else float32.

    Raises:
        ModelError: the name is unknown.
    """
    if name == "auto":
        quick = _computes_in_bfloat16(device) or (device.type == "cpu" and can_pack())
        return torch.bfloat16 if quick else torch.float32
    if name not in DTYPES:
        raise ModelError(f"The type {name!r} is unknown; give auto, {', '.join(DTYPES)}.")
    return DTYPES[name]


def available_memory(device: torch.device) -> int | None:
    """Bytes of memory a model may still take on a device, or None where that cannot be told."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    limits = [limit for limit in (_machine_memory(), _container_memory()) if limit is not None]
    return min(limits, default=None)


def spare_memory(device: torch.device) -> int | None:
    """Bytes that keys and values may take where nobody says: of a GPU nearly all that is free, for it has nothing else
    to do; of a machine's own memory half, for it has. None where that cannot be told."""
    free = available_memory(device)
    return None if free is None else free * 4 // 5 if device.type == "cuda" else free // 2


def processor(device: torch.device) -> str:
    """What kind of processor a device is, as far as the system tells."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return f"{device.type} {platform.processor()}"
    kept = ("model name", "cpu family", "model", "stepping", "flags", "CPU part", "Features")
    facts = {line.partition(":")[0].strip(): line.partition(":")[2].strip() for line in lines}
    return f"{device.type} " + "; ".join(facts[name] for name in kept if name in facts)


def _computes_in_bfloat16(device: torch.device) -> bool:
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return device.type == "mps" or bool({"avx512_bf16", "amx_bf16"} & _cpu_features())


def _cpu_features() -> set[str]:
    if hasattr(torch.cpu, "get_capabilities"):
        return {name for name, value in torch.cpu.get_capabilities().items() if value is True}
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return set()
    return {flag for line in lines if line.startswith("flags") for flag in line.partition(":")[2].split()}


def _machine_memory() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _container_memory() -> int | None:
    """What a control group (version 2) still allows."""
    root = Path("/sys/fs/cgroup")
    try:
        limit = (root / "memory.max").read_text(encoding="ascii").strip()
        used = int((root / "memory.current").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return None if limit == "max" else max(int(limit) - used, 0)

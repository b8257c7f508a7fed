"""Seeds of a request's answers."""

from __future__ import annotations

import secrets
from collections.abc import Iterator


def seeded(seed: int | None, choices: int) -> Iterator[int]:
    """The seed of each answer to one prompt.

    Answer ``k`` of a seeded request gets ``seed + k``: the first is what the request would give alone, and
    the others differ from it. Negative seeds, which OpenAI's API allows, are read as unsigned 64-bit numbers.
    """
    first = secrets.randbits(64) if seed is None else seed
    return ((first + choice) % 2**64 for choice in range(choices))

"""What a GGUF file says about itself, checked before anything is built from it.

Keys and types: the GGUF specification, https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from lookup_spec.errors import ModelError

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
"""Kinds of tokens, as ``tokenizer.ggml.token_type`` counts them."""

_SPECIAL_IDS = ("bos", "eos", "eot", "eom", "unknown", "padding", "separator", "mask")
_ROTARY_TABLES = frozenset({"rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"})


@dataclass(frozen=True, slots=True)
class GgufFile:
    """Metadata of one file.

    Attributes:
        path: the file.
        metadata: the scalar values and strings by key, and arrays as lists.
        tensors: shape of each tensor by name, outermost dimension first.
    """

    path: Path
    metadata: Mapping[str, Any]
    tensors: Mapping[str, tuple[int, ...]]

    @property
    def tokens(self) -> list[str]:
        """The vocabulary; a token's id is its index."""
        return list(self.metadata["tokenizer.ggml.tokens"])

    @property
    def token_types(self) -> list[int]:
        """The kind of each token; all normal if the file does not say."""
        return list(self.metadata.get("tokenizer.ggml.token_type") or [NORMAL] * len(self.tokens))

    def special_id(self, role: str) -> int | None:
        """The token id of a role (bos, eos, unknown, padding, …), if the file names one."""
        value = self.metadata.get(f"tokenizer.ggml.{role}_token_id")
        return None if value is None else int(value)


def read_gguf(path: Path) -> GgufFile:
    """Reads and checks a file's metadata; its weights are not touched.

    Raises:
        ModelError: the file is truncated or no GGUF file, or its metadata contradicts itself; the message names
            the key.
    """
    try:
        reader = gguf.GGUFReader(path)
        metadata = {key: field.contents() for key, field in reader.fields.items()}
        tensors = {t.name: tuple(int(n) for n in reversed(t.shape)) for t in reader.tensors}
    except (
        ValueError,
        IndexError,
        KeyError,
        OSError,
        UnicodeDecodeError,
        OverflowError,
        MemoryError,
    ) as error:
        raise ModelError(
            f"{path} is no readable GGUF file ({_one_line(error)}); it may be truncated: fetch it again."
        ) from error
    file = GgufFile(path, metadata, tensors)
    _check(file)
    return file


def file_sha256(path: Path) -> str:
    """The file's sha256, hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as source:
        while block := source.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _check(file: GgufFile) -> None:
    def refuse(key: str, problem: str) -> ModelError:
        return ModelError(f"{file.path}: {key} {problem}; the file is inconsistent and would be misread.")

    for key in ("general.architecture", "tokenizer.ggml.model", "tokenizer.ggml.tokens"):
        if key not in file.metadata:
            raise refuse(key, "is missing")
    count = len(file.tokens)
    if len(file.token_types) != count:
        raise refuse("tokenizer.ggml.token_type", f"has {len(file.token_types)} entries for {count} tokens")
    for role in _SPECIAL_IDS:
        token = file.special_id(role)
        if token is not None and not 0 <= token < count:
            raise refuse(f"tokenizer.ggml.{role}_token_id", f"is {token}, outside the {count} tokens")
    if file.special_id("eos") is None:
        raise refuse("tokenizer.ggml.eos_token_id", "is missing, so answers would never end")
    rows = file.tensors.get("token_embd.weight", (count,))[0]
    if count > rows:
        raise refuse(
            "tokenizer.ggml.tokens", f"has {count} entries, more than the {rows} rows of token_embd.weight"
        )
    if tables := _ROTARY_TABLES & file.tensors.keys():
        raise ModelError(
            f"{file.path} scales its rotary positions by the table {sorted(tables)[0]}, which cannot be read from "
            "GGUF files here; use the model's safetensors directory instead."
        )


def rotary_scaling(file: GgufFile) -> str | None:
    """The kind of rotary scaling the file asks for, if any."""
    architecture = file.metadata["general.architecture"]
    kind = file.metadata.get(f"{architecture}.rope.scaling.type")
    factor = file.metadata.get(f"{architecture}.rope.scaling.factor", 1.0)
    return None if kind in (None, "none") or np.isclose(factor, 1.0) else str(kind)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__

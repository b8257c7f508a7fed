"""The GGUF format: a header of key-value pairs, a table of tensors, then their data.

Layout: the GGUF specification, https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3,
little endian. The vocabulary is some hundred thousand small strings in the header; reading them in one go
takes well under a second, where a memory-mapped array for each takes ten.
"""

from __future__ import annotations

import hashlib
import math
import mmap
import shutil
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

from lookup_spec.errors import ModelError
from lookup_spec.model.libraries import one_line

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
"""Kinds of tokens, as ``tokenizer.ggml.token_type`` counts them."""

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_START = struct.Struct("<4sIQQ")
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_UINT32, _STRING, _ARRAY = 4, 8, 9
_VOCABULARY = frozenset(f"tokenizer.ggml.{part}" for part in ("tokens", "scores", "token_type", "merges"))
_ALIGNMENT = 32


@dataclass(frozen=True, slots=True)
class GgufFile:
    """The header of one file.

    Attributes:
        path: the file.
        metadata: value by key; arrays as lists.
        tensors: shape of each tensor by name, outermost dimension first.
        pairs: where each key-value pair lies, as start and end in bytes.
        table: where the table of tensors lies.
        data_start: where the tensors' data begin.
    """

    path: Path
    metadata: Mapping[str, Any]
    tensors: Mapping[str, tuple[int, ...]]
    pairs: Mapping[str, tuple[int, int]]
    table: tuple[int, int]
    data_start: int

    @property
    def architecture(self) -> str:
        """What kind of model it is, in llama.cpp's names."""
        return str(self.metadata["general.architecture"])

    @property
    def tokens(self) -> list[str]:
        """The vocabulary; a token's id is its index."""
        tokens: list[str] = self.metadata["tokenizer.ggml.tokens"]
        return tokens

    @property
    def token_types(self) -> list[int]:
        """The kind of each token; all normal if the file does not say."""
        types: list[int] | None = self.metadata.get("tokenizer.ggml.token_type")
        return types if types is not None else [NORMAL] * len(self.tokens)

    def special_id(self, role: str) -> int | None:
        """The token id of a role (bos, eos, unknown, padding, …), if the file names one."""
        value = self.metadata.get(f"tokenizer.ggml.{role}_token_id")
        return None if value is None else int(value)


def read_gguf(path: Path) -> GgufFile:
    """Reads a file's header and checks that the file holds all the data that the header tells of.

    Raises:
        ModelError: the file is truncated, or no GGUF file.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _parse(path, data)
    except (struct.error, ValueError, OverflowError, MemoryError, OSError, KeyError) as error:
        raise ModelError(
            f"{path} is no readable GGUF file ({one_line(error)}); it may be truncated, so fetch it again."
        ) from error


def file_sha256(path: Path) -> str:
    """The file's sha256, hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as source:
        while block := source.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def write_without_vocabulary(file: GgufFile, target: Path, vocab_size: int) -> None:
    """Copies a file without its vocabulary, stating only how large that is.

    transformers reads the vocabulary several times while it loads the weights, which takes longer than they.
    """
    size_key = f"{file.architecture}.vocab_size"
    kept = [pair for key, pair in file.pairs.items() if key not in _VOCABULARY | {size_key}]
    encoded = size_key.encode()
    size = struct.pack(f"<Q{len(encoded)}sII", len(encoded), encoded, _UINT32, vocab_size)
    with file.path.open("rb") as source, target.open("wb") as output:
        _, version, tensor_count, _ = _START.unpack(source.read(_START.size))
        output.write(_START.pack(_MAGIC, version, tensor_count, len(kept) + 1))
        output.write(size)
        for start, end in (*kept, file.table):
            source.seek(start)
            output.write(source.read(end - start))
        alignment = int(file.metadata.get("general.alignment", _ALIGNMENT))
        output.write(bytes(-output.tell() % alignment))
        source.seek(file.data_start)
        shutil.copyfileobj(source, output, 1 << 24)


@dataclass(slots=True)
class _Cursor:
    data: mmap.mmap
    position: int

    def scalars(self, codes: str) -> tuple[Any, ...]:
        layout = "<" + codes
        values = struct.unpack_from(layout, self.data, self.position)
        self.position += struct.calcsize(layout)
        return values

    def string(self) -> str:
        (length,) = self.scalars("Q")
        start, self.position = self.position, self.position + length
        if self.position > len(self.data):
            raise ValueError(f"a string of {length} bytes reaches past the end")
        return self.data[start : self.position].decode("utf-8")

    def value(self, kind: int) -> Any:
        if kind == _STRING:
            return self.string()
        if kind != _ARRAY:
            return self.scalars(_SCALARS[kind])[0]
        element, count = self.scalars("IQ")
        if element in _SCALARS:
            return list(self.scalars(f"{count}{_SCALARS[element]}"))
        return [self.value(element) for _ in range(count)]


def _parse(path: Path, data: mmap.mmap) -> GgufFile:
    magic, version, tensor_count, pair_count = _START.unpack_from(data, 0)
    if magic != _MAGIC or version not in _VERSIONS:
        raise ValueError(f"it starts with {magic!r} and version {version}")
    cursor = _Cursor(data, _START.size)
    metadata: dict[str, Any] = {}
    pairs: dict[str, tuple[int, int]] = {}
    for _ in range(pair_count):
        start, key = cursor.position, cursor.string()
        metadata[key] = cursor.value(cursor.scalars("I")[0])
        pairs[key] = (start, cursor.position)
    table_start = cursor.position
    tensors: dict[str, tuple[int, ...]] = {}
    data_end = 0
    for _ in range(tensor_count):
        name = cursor.string()
        dimensions = cursor.scalars(f"{cursor.scalars('I')[0]}Q")
        kind, offset = cursor.scalars("IQ")
        block, block_bytes = GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
        tensors[name] = tuple(reversed(dimensions))
        data_end = max(data_end, offset + math.prod(dimensions) // block * block_bytes)
    alignment = int(metadata.get("general.alignment", _ALIGNMENT))
    data_start = -(-cursor.position // alignment) * alignment
    if data_start + data_end > len(data):
        raise ValueError(f"its tensors need {data_start + data_end} bytes, and it has {len(data)}")
    return GgufFile(path, metadata, tensors, pairs, (table_start, cursor.position), data_start)

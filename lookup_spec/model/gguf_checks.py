"""What must agree within a GGUF file before anything is built from it."""

from __future__ import annotations

import math

from lookup_spec.errors import ModelError
from lookup_spec.model.gguf_file import GgufFile

_SPECIAL_ROLES = ("bos", "eos", "eot", "eom", "unknown", "padding", "separator", "mask")
_ROTARY_TABLES = frozenset({"rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"})


def check_consistent(file: GgufFile) -> None:
    """Refuses a file whose metadata contradict themselves, rather than guess what was meant.

    Raises:
        ModelError: naming the key.
    """
    for key in ("general.architecture", "tokenizer.ggml.model", "tokenizer.ggml.tokens"):
        if key not in file.metadata:
            raise _inconsistent(file, key, "is missing")
    count = len(file.tokens)
    if len(file.token_types) != count:
        problem = f"has {len(file.token_types)} entries for {count} tokens"
        raise _inconsistent(file, "tokenizer.ggml.token_type", problem)
    for role in _SPECIAL_ROLES:
        token = file.special_id(role)
        if token is not None and not 0 <= token < count:
            problem = f"is {token}, outside the {count} tokens"
            raise _inconsistent(file, f"tokenizer.ggml.{role}_token_id", problem)
    if file.special_id("eos") is None:
        raise _inconsistent(file, "tokenizer.ggml.eos_token_id", "is missing, so answers would never end")
    rows = embedding_rows(file)
    if count > rows:
        problem = f"has {count} entries, more than the {rows} rows of token_embd.weight"
        raise _inconsistent(file, "tokenizer.ggml.tokens", problem)


def check_rotary(file: GgufFile, rope_type: str) -> None:
    """Refuses a file that scales its rotary positions in a way that did not arrive in the configuration.

    Args:
        file: the file.
        rope_type: what the configuration made of it.

    Raises:
        ModelError: naming the key or the tensor.
    """
    kind = file.metadata.get(f"{file.architecture}.rope.scaling.type", "none")
    factor = file.metadata.get(f"{file.architecture}.rope.scaling.factor", 1.0)
    scaled = kind != "none" and not math.isclose(factor, 1.0)
    tables = sorted(_ROTARY_TABLES & file.tensors.keys())
    if rope_type == "default" and (scaled or tables):
        what = tables[0] if tables else f"{file.architecture}.rope.scaling.type {kind!r}"
        raise ModelError(
            f"{file.path} scales its rotary positions by {what}, which cannot be read from GGUF files here; "
            "use the model's safetensors directory instead."
        )


def embedding_rows(file: GgufFile) -> int:
    """How many tokens the model has embeddings for.

    Raises:
        ModelError: the file has no embeddings.
    """
    if "token_embd.weight" not in file.tensors:
        raise _inconsistent(file, "token_embd.weight", "is missing")
    return file.tensors["token_embd.weight"][0]


def _inconsistent(file: GgufFile, key: str, problem: str) -> ModelError:
    return ModelError(f"{file.path}: {key} {problem}; the file would be misread, so it is refused.")

"""The tokenizer of a model directory, as its files describe it."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer, PreTrainedTokenizerFast

from lookup_spec.errors import ModelError
from lookup_spec.model.libraries import one_line

_log = logging.getLogger(__name__)


def load_tokenizer(directory: Path) -> PreTrainedTokenizerFast:
    """Loads a tokenizer so that ids and texts are exactly those of its ``tokenizer.json``.

    The classes that transformers picks by a model's type may rebuild the pipeline (adding, for one, Unicode
    normalization that the file does not have), so the file is loaded as it stands. Only directories without
    one go through those classes.

    Raises:
        ModelError: there is no tokenizer, or none of the fast kind.
    """
    tokenizer = _from_json(directory) if (directory / "tokenizer.json").is_file() else _from_parts(directory)
    if tokenizer.clean_up_tokenization_spaces:
        _log.warning(
            "The tokenizer in %s asks to clean up spaces when decoding, which changes code; it is left off.",
            directory,
        )
    # Spaces before punctuation are part of the text: without them the answer would differ from its tokens.
    tokenizer.clean_up_tokenization_spaces = False
    return tokenizer


def check_vocabulary(tokenizer: PreTrainedTokenizerFast, rows: int, directory: Path) -> None:
    """Refuses a tokenizer that gives ids for which the model has no embedding.

    Args:
        tokenizer: of the model.
        rows: number of embeddings.
        directory: where the model lies, for the message.
    """
    token, index = max(tokenizer.get_vocab().items(), key=lambda item: item[1])
    if index >= rows:
        raise ModelError(
            f"The tokenizer in {directory} gives {token!r} the id {index}, but vocab_size is {rows}: "
            "tokenizer and model do not belong together."
        )


def _from_json(directory: Path) -> PreTrainedTokenizerFast:
    try:
        loaded: PreTrainedTokenizerFast = PreTrainedTokenizerFast.from_pretrained(str(directory), local_files_only=True)
    # The Rust library raises plain Exception for a malformed tokenizer.json.
    except Exception as error:
        raise ModelError(f"The tokenizer in {directory} cannot be loaded: {one_line(error)}") from error
    return loaded


def _from_parts(directory: Path) -> PreTrainedTokenizerFast:
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(str(directory), local_files_only=True, trust_remote_code=False)
    except Exception as error:
        raise ModelError(
            f"{directory} holds no tokenizer.json, and no fast tokenizer can be made from what it holds: "
            f"{one_line(error)}"
        ) from error
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise ModelError(
            f"The tokenizer in {directory} is a {type(tokenizer).__name__}, which has no fast backend; "
            "add a tokenizer.json."
        )
    return tokenizer


def declared_end_ids(directory: Path) -> frozenset[int]:
    """The end tokens that ``generation_config.json`` names; empty if there is none."""
    path = directory / "generation_config.json"
    if not path.is_file():
        return frozenset()
    try:
        value = json.loads(path.read_text(encoding="utf-8")).get("eos_token_id")
    except (ValueError, AttributeError) as error:
        raise ModelError(f"{path} is no valid JSON object ({error}).") from error
    return as_ids(value, f"eos_token_id in {path}")


def as_ids(value: object, key: str) -> frozenset[int]:
    """The ids of a configuration value that holds one, several, or none."""
    values = value if isinstance(value, (list, tuple)) else [] if value is None else [value]
    ids = frozenset(token for token in values if isinstance(token, int) and not isinstance(token, bool))
    if len(ids) < len(set(map(repr, values))):
        raise ModelError(f"{key} is {value!r}, not a token id or a list of them.")
    return ids

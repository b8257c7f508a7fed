"""What the token lane needs to know about text when a name changes: pieces of tokens, tokens of texts."""

from __future__ import annotations

from collections.abc import Sequence

from tokenizers import Tokenizer

_METASPACE = "\u2581"


class TokenizerRetokenizer:
    """Answers from a tokenizer. Safe to share between requests of one thread at a time.

    Args:
        tokenizer: the model's own, as the Rust library has it (``backend_tokenizer`` of a transformers one).
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._pieces: dict[int, str] = {}

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The text of each token; a token that holds part of a character has a replacement character."""
        known = self._pieces
        try:
            return [known[token] for token in ids]
        except KeyError:
            known.update((token, self._piece(token)) for token in ids if token not in known)
            return [known[token] for token in ids]

    def encode(self, text: str) -> list[int]:
        """The tokens of a text without any that mark a beginning or an end."""
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def _piece(self, token: int) -> str:
        text = self._tokenizer.decode([token], skip_special_tokens=False)
        # Tokenizers that mark spaces in the token strip the first one of whatever they decode.
        marked = (self._tokenizer.id_to_token(token) or "").startswith(_METASPACE)
        return f" {text}" if marked and not text.startswith(" ") else text

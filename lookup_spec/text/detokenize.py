"""Token ids to text, one token at a time, without ever showing half a character.

A tokenizer's own ``decode`` works on whole sequences. Here each id becomes bytes once, when the vocabulary is
read, and an answer is decoded by an incremental UTF-8 decoder: a character spread over several tokens appears
when its last byte does. No clean-up of spaces takes place: it would change source code.
"""

from __future__ import annotations

import codecs
import json
import logging
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from lookup_spec.errors import ModelError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_log = logging.getLogger(__name__)
_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_Step = Callable[[str], str]


def _byte_of_letter() -> dict[int, int]:
    """GPT-2's printable alphabet for bytes: code point to byte (its ``bytes_to_unicode``)."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {**{byte: byte for byte in plain}, **{256 + n: byte for n, byte in enumerate(others)}}


_BYTES = _byte_of_letter()
_LETTERS = frozenset(map(chr, _BYTES))


def _byte_level(token: str) -> bytes:
    """A token spelled in the byte alphabet; an added token with any other letter stands for itself."""
    return token.translate(_BYTES).encode("latin-1") if _LETTERS.issuperset(token) else token.encode()


class _Decoder:
    """What a tokenizer's decoder description says, as far as single tokens and the start of a text go.

    Attributes:
        byte_level: tokens are spelled in GPT-2's byte alphabet.
        byte_fallback: tokens like ``<0x0A>`` are single bytes.
        head: what is dropped from the very first token (the replacement mark of a Metaspace decoder).
        strip: how many of ``strip_letter`` are dropped from the start of the text.
    """

    def __init__(self, description: dict[str, Any] | None) -> None:
        self.byte_level = False
        self.byte_fallback = False
        self.head = ""
        self.strip = 0
        self.strip_letter = " "
        self._steps: list[_Step] = []
        self._fused = False
        self._read(description)

    def _read(self, description: dict[str, Any] | None) -> None:
        match description:
            case {"type": "Sequence", "decoders": list(parts)}:
                for part in parts:
                    self._read(part)
            case {"type": "ByteLevel"} if not self._fused and not self.byte_level:
                self.byte_level = True
            case {"type": "ByteFallback"} if not self._fused:
                self.byte_fallback = True
            case {"type": "Fuse"}:
                self._fused = True
            case {"type": "Metaspace", "replacement": str(mark), "prepend_scheme": scheme} if not self._fused:
                self.head = "" if scheme == "never" else mark
                self._steps.append(lambda token: token.replace(mark, " "))
            case {"type": "Replace", "pattern": {"String": str(old)}, "content": str(new)} if (
                len(old) == 1 or not self._fused
            ):
                self._steps.append(lambda token: token.replace(old, new))
            case {"type": "Strip", "content": str(letter), "start": int(start), "stop": 0} if self._fused:
                self.strip, self.strip_letter = start, letter
            case _:
                kind = "none" if description is None else json.dumps(description, ensure_ascii=False)
                raise ModelError(
                    f"This tokenizer's decoder ({kind}) cannot be followed token by token; use a model with "
                    "a byte-level or SentencePiece-style tokenizer."
                )

    def piece(self, token: str) -> bytes:
        """The bytes one token adds to a text."""
        if self.byte_fallback and (byte := _BYTE_TOKEN.fullmatch(token)):
            return bytes([int(byte[1], 16)])
        for step in self._steps:
            token = step(token)
        return _byte_level(token) if self.byte_level else token.encode()


class Vocabulary:
    """The bytes of every token of one tokenizer; built once a model, shared by all its answers.

    Args:
        tokenizer: a fast tokenizer of the transformers library.

    Raises:
        ModelError: the tokenizer is not a fast one, or joins its tokens in a way that needs the whole text.

    Attributes:
        pieces: bytes of each token id; empty for special tokens, which are never shown.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise ModelError(
                f"The tokenizer {type(tokenizer).__name__} is not a fast one; convert it to tokenizer.json."
            )
        if getattr(tokenizer, "clean_up_tokenization_spaces", False):
            _log.warning("The tokenizer's clean-up of spaces is overridden: it would change source code.")
        state = backend.decoder.__getstate__() if backend.decoder is not None else b"null"
        self._decoder = _Decoder(json.loads(state))
        ids: dict[str, int] = backend.get_vocab(with_added_tokens=True)
        self._tokens = [""] * (max(ids.values(), default=-1) + 1)
        for token, token_id in ids.items():
            self._tokens[token_id] = token
        special = {token.content for token in backend.get_added_tokens_decoder().values() if token.special}
        piece = self._decoder.piece
        self.pieces: tuple[bytes, ...] = tuple(b"" if token in special else piece(token) for token in self._tokens)

    def __len__(self) -> int:
        return len(self.pieces)

    def piece(self, token_id: int) -> bytes:
        """The bytes of one token; ids beyond the vocabulary (padding rows of the head) have none."""
        return self.pieces[token_id] if token_id < len(self.pieces) else b""

    def opening(self, token_id: int) -> bytes:
        """The bytes of a token that begins a text."""
        if not self._decoder.head:
            return self.piece(token_id)
        return self._decoder.piece(self._tokens[token_id].replace(self._decoder.head, ""))

    @property
    def leading(self) -> tuple[int, str]:
        """How many of which letter the decoder drops from the start of a text."""
        return self._decoder.strip, self._decoder.strip_letter

    @property
    def replaces_each_byte(self) -> bool:
        """Whether an unfinished character becomes one U+FFFD per byte, rather than one in all."""
        return self._decoder.byte_fallback and not self._decoder.byte_level


class Detokenizer:
    """Text of one answer, from its token ids in order.

    The pieces joined equal the tokenizer's own ``decode`` of all ids (special tokens skipped, no clean-up),
    for the ids of any text. At most three bytes, those of an unfinished character, are held back.

    Args:
        vocabulary: of the model's tokenizer.
        continuing: the answer continues a text begun in the prompt, so a space at its start is part of it.
            Otherwise the decoder's own rule holds: SentencePiece-style ones drop the space they put before a
            text's first word.
    """

    def __init__(self, vocabulary: Vocabulary, *, continuing: bool = False) -> None:
        self._vocabulary = vocabulary
        self._held = b""
        self._at_start = not continuing
        self._strip, self._letter = (0, " ") if continuing else vocabulary.leading

    def push(self, token_id: int) -> str:
        """The text that became complete with this token; often all of it, sometimes nothing."""
        piece = self._vocabulary.piece(token_id)
        if self._at_start and piece:
            piece, self._at_start = self._vocabulary.opening(token_id), False
        if self._held:
            piece = self._held + piece
        text, used = codecs.utf_8_decode(piece, "replace", False)
        self._held = piece[used:]
        return self._stripped(text) if self._strip else text

    def push_all(self, token_ids: Iterable[int]) -> str:
        """The text that became complete with these tokens."""
        return "".join(map(self.push, token_ids))

    def flush(self) -> str:
        """The end of the text: bytes that never became a character come out as U+FFFD."""
        held, self._held = self._held, b""
        if self._vocabulary.replaces_each_byte:
            return "\ufffd" * len(held)
        return held.decode("utf-8", errors="replace")

    @property
    def pending(self) -> int:
        """Bytes held back, 0 to 3."""
        return len(self._held)

    def _stripped(self, text: str) -> str:
        while self._strip and text:
            if not text.startswith(self._letter):
                self._strip = 0
                break
            text, self._strip = text[1:], self._strip - 1
        return text

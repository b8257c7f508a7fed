from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer

from lookup_spec.text.retokenize import TokenizerRetokenizer

TEXT = "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n"


def byte_level() -> Tokenizer:
    made = Tokenizer(BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator([TEXT], BpeTrainer(vocab_size=300, initial_alphabet=alphabet, show_progress=False))
    return made


def metaspace() -> Tokenizer:
    made = Tokenizer(BPE())
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never", split=True)
    made.decoder = decoders.Metaspace(prepend_scheme="always")
    made.train_from_iterator([TEXT], BpeTrainer(vocab_size=60, show_progress=False))
    return made


@pytest.mark.parametrize("make", [byte_level, metaspace])
def test_pieces_join_to_the_text(make: object) -> None:
    """The pieces of a text's tokens, joined, are the text, spaces in front of words included."""
    retokenizer = TokenizerRetokenizer(make())  # type: ignore[operator]  # parametrized functions
    assert "".join(retokenizer.pieces(retokenizer.encode(TEXT))) == TEXT


RETOKENIZER = TokenizerRetokenizer(byte_level())


@given(st.text(alphabet="ab( \n\t_1é👩", max_size=40))
def test_every_token_has_a_piece(text: str) -> None:
    """There is one piece a token; parts of a character are replacement characters, all else is exact."""
    ids = RETOKENIZER.encode(text)
    pieces = RETOKENIZER.pieces(ids)
    assert len(pieces) == len(ids)
    if text.isascii():
        assert "".join(pieces) == text
    else:
        kept = [char for char in "".join(pieces) if char != "\ufffd"]
        assert [char for char in kept if char.isascii()] == [char for char in text if char.isascii()]

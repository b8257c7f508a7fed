from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models
from transformers import PreTrainedTokenizerFast

from lookup_spec.errors import ModelError
from lookup_spec.text.detokenize import Detokenizer, Vocabulary

TEXTS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from(" \t\r\n▁<0xE2>é😀"))
MIXED = "naïve café – 日本語テスト 👩‍👩‍👧‍👦 ✅ \u2067عربي\u2069 end\n"
CODE = [
    'if a != b :\n\tx = [ 1 , 2 ]\n    y = " ."\n',
    "    return 1",
    "  \n \t\n",
    "don 't ; `a ?`",
    "x\t\t= 1",
    "\n\n\nfoo",
    MIXED,
]


@pytest.fixture(scope="session")
def vocabulary(family: PreTrainedTokenizerFast) -> Vocabulary:
    return Vocabulary(family)


def one_shot(tokenizer: PreTrainedTokenizerFast, ids: list[int]) -> str:
    return tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)


@given(text=TEXTS)
def test_pieces_joined_equal_the_one_shot_decode(family, vocabulary, text):
    """The pieces joined equal the tokenizer's own decoding of all ids, for any text."""
    ids = family(text)["input_ids"]
    stream = Detokenizer(vocabulary)
    assert stream.push_all(ids) + stream.flush() == one_shot(family, ids)


@given(text=TEXTS, data=st.data())
def test_no_half_character_is_shown(family, vocabulary, text, data):
    """At any point the shown text is a prefix of the whole, lacks at most the character in progress, and at
    most three bytes are pending."""
    ids = family(text, add_special_tokens=False)["input_ids"]
    whole = one_shot(family, ids)
    stream, shown = Detokenizer(vocabulary), ""
    for token_id in ids[: data.draw(st.integers(0, len(ids)))]:
        shown += stream.push(token_id)
        assert whole.startswith(shown)
        assert stream.pending <= 3
    assert shown.count("\ufffd") <= text.count("\ufffd")


@given(text=st.text(st.characters(exclude_categories=["Cs"]), min_size=1), cut=st.integers(1, 3))
def test_an_unfinished_character_ends_as_the_one_shot_decode_ends(one_byte, text, cut):
    """Bytes that never became a character come out with the flush, as U+FFFD."""
    ids = one_byte(text, add_special_tokens=False)["input_ids"][:-cut]
    stream = Detokenizer(Vocabulary(one_byte))
    assert stream.push_all(ids) + stream.flush() == one_shot(one_byte, ids)


@given(ids=st.lists(st.integers(0, 600), max_size=20))
def test_any_ids_of_a_byte_level_tokenizer_decode_alike(chatml, chatml_vocabulary, ids):
    """Even ids that are no text's, invalid bytes and ids beyond the vocabulary included, decode alike."""
    stream = Detokenizer(chatml_vocabulary)
    assert stream.push_all(ids) + stream.flush() == one_shot(chatml, ids)


@pytest.fixture(scope="session")
def chatml_vocabulary(chatml: PreTrainedTokenizerFast) -> Vocabulary:
    return Vocabulary(chatml)


@pytest.mark.parametrize("text", CODE)
@pytest.mark.parametrize("name", ["byte-level", "sentencepiece with prefix", "sentencepiece"])
def test_code_comes_back_byte_for_byte(families, name, text):
    """Spaces, tabs and line ends of code survive, at the start of an answer too."""
    tokenizer = families(name)
    stream = Detokenizer(Vocabulary(tokenizer))
    assert stream.push_all(tokenizer(text)["input_ids"]) + stream.flush() == text


def test_a_character_appears_with_its_last_byte(one_byte):
    """A four-byte character comes out with its fourth byte, not later."""
    stream = Detokenizer(Vocabulary(one_byte))
    ids = one_byte("\U0001fae0", add_special_tokens=False)["input_ids"]
    assert [stream.push(i) for i in ids] == ["", "", "", "\U0001fae0"]


def test_a_truncated_byte_fallback_character_is_one_mark_per_byte(families):
    """A byte-fallback decoder writes U+FFFD for each byte of an unfinished character; so does the stream."""
    tokenizer = families("sentencepiece")
    ids = tokenizer("a \U0001fae0", add_special_tokens=False)["input_ids"][:-1]
    stream = Detokenizer(Vocabulary(tokenizer))
    assert stream.push_all(ids) + stream.flush() == one_shot(tokenizer, ids) == "a \ufffd\ufffd\ufffd"


def test_a_continued_text_keeps_its_leading_space(families):
    """A SentencePiece answer that continues the prompt's text keeps the space before its first word."""
    tokenizer = families("sentencepiece with prefix")
    ids = tokenizer("return", add_special_tokens=False)["input_ids"]
    vocabulary = Vocabulary(tokenizer)
    assert Detokenizer(vocabulary).push_all(ids) == "return"
    assert Detokenizer(vocabulary, continuing=True).push_all(ids) == " return"


def test_special_tokens_are_never_shown(chatml, chatml_vocabulary):
    """Control tokens vanish, wherever they stand; other added tokens are text."""
    ids = chatml("<|im_start|>a<|im_end|><tool call é>", add_special_tokens=False)["input_ids"]
    assert len(ids) == 4
    assert Detokenizer(chatml_vocabulary).push_all(ids) == "a<tool call é>"


def test_the_clean_up_of_spaces_is_overridden_and_logged(families, caplog):
    """A tokenizer that asks for the clean-up does not get it, and the log says so."""
    tokenizer = families("metaspace always")
    tokenizer.clean_up_tokenization_spaces = True
    with caplog.at_level(logging.WARNING):
        vocabulary = Vocabulary(tokenizer)
    tokenizer.clean_up_tokenization_spaces = False
    assert "clean-up" in caplog.text
    assert Detokenizer(vocabulary).push_all(tokenizer("a . b")["input_ids"]) == "a . b"


@pytest.mark.parametrize("decoder", [None, decoders.WordPiece(), decoders.BPEDecoder(), decoders.Strip(" ", 1, 0)])
def test_an_unknown_decoder_is_refused_at_once(decoder):
    """A decoder that needs the whole text is refused when the vocabulary is built."""
    backend = Tokenizer(models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]"))
    if decoder is not None:
        backend.decoder = decoder
    with pytest.raises(ModelError, match="decoder"):
        Vocabulary(PreTrainedTokenizerFast(tokenizer_object=backend))

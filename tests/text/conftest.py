"""Small real tokenizers of the families in use, trained on a few lines of code and prose."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache

import pytest
from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import PreTrainedTokenizerFast

CORPUS = [
    "def add(a, b):\n    return a + b\n\n\nclass Tool:\n\tname = 'naïve café'\n",
    "if a != b :\n\tx = [ 1 , 2 ]\n    y = ' .'\nfor item in items:\n        print(item)\n",
    "The quick brown fox – jumps over the lazy dog. 日本語 テスト ✅\r\n",
    "one two three return total ### END read write close exit\n",
] * 4
CHATML = (
    "{% for m in messages %}"
    "{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
_CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def byte_level(*, regex: bool = True, merges: int = 200) -> PreTrainedTokenizerFast:
    """GPT-2 style; with the markers of ChatML, and two added tokens that are not special."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=regex)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=256 + merges,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in _CONTROL])
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in ("<|fim_middle|>", "<tool call é>")])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        chat_template=CHATML,
        clean_up_tokenization_spaces=False,
    )


def sentencepiece(*, prefix: bool, bos: bool = True) -> PreTrainedTokenizerFast:
    """Llama-2 style (``prefix``: a space is put before the text and stripped again) or Gemma style."""
    mark = "▁"
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    trained = Tokenizer(models.BPE(unk_token="<unk>"))
    trained.normalizer = normalizers.Replace(" ", mark)
    trained.train_from_iterator(
        [line.replace("\n", " ").replace("\t", " ").replace("é", "e") for line in CORPUS],
        trainers.BpeTrainer(vocab_size=220, show_progress=False, special_tokens=["<unk>", "<s>", "</s>", *bytes_]),
    )
    state = json.loads(trained.to_str())["model"]
    tokenizer = Tokenizer(
        models.BPE(
            state["vocab"],
            [tuple(pair) for pair in state["merges"]],
            unk_token="<unk>",
            byte_fallback=True,
            fuse_unk=True,
        )
    )
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    replace = normalizers.Replace(" ", mark)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend(mark), replace]) if prefix else replace
    strip = [decoders.Strip(" ", 1, 0)] if prefix else []
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace(mark, " "), decoders.ByteFallback(), decoders.Fuse(), *strip]
    )
    if bos:
        tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        clean_up_tokenization_spaces=False,
    )


def metaspace(scheme: str) -> PreTrainedTokenizerFast:
    """Unigram with a Metaspace decoder, T5 style."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    tokenizer.decoder = decoders.Metaspace(prepend_scheme=scheme)
    tokenizer.train_from_iterator(
        CORPUS,
        trainers.UnigramTrainer(vocab_size=150, show_progress=False, special_tokens=["<unk>"], unk_token="<unk>"),
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", clean_up_tokenization_spaces=False)


FAMILIES = {
    "byte-level": byte_level,
    "bytes alone": lambda: byte_level(regex=False, merges=0),
    "sentencepiece with prefix": lambda: sentencepiece(prefix=True),
    "sentencepiece": lambda: sentencepiece(prefix=False),
    "metaspace always": lambda: metaspace("always"),
    "metaspace never": lambda: metaspace("never"),
}


@pytest.fixture(scope="session")
def chatml() -> PreTrainedTokenizerFast:
    return byte_level()


@pytest.fixture(scope="session")
def one_byte() -> PreTrainedTokenizerFast:
    """One byte per token."""
    return byte_level(regex=False, merges=0)


@pytest.fixture(scope="session", params=list(FAMILIES))
def family(request: pytest.FixtureRequest) -> PreTrainedTokenizerFast:
    return FAMILIES[request.param]()


@pytest.fixture(scope="session")
def families() -> Callable[[str], PreTrainedTokenizerFast]:
    """A family's tokenizer by name."""
    return cache(lambda name: FAMILIES[name]())

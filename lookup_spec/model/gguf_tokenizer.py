"""The tokenizer that a GGUF file describes, as the one its tokenizer.json described.

Byte-level vocabularies are built here, from what the file holds and nothing else: control and user-defined
tokens stay whole, text is split by the pattern that ``tokenizer.ggml.pre`` names, and nothing is normalized,
so every text comes back byte for byte. SentencePiece vocabularies are rebuilt by transformers.
"""

from __future__ import annotations

from collections.abc import Callable

from tokenizers import AddedToken, Regex, Tokenizer, decoders, pre_tokenizers, processors
from tokenizers.models import BPE
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from lookup_spec.errors import ModelError
from lookup_spec.model.gguf_file import CONTROL, UNUSED, USER_DEFINED, GgufFile

_ROLES = {"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding"}

_END_MARKS = frozenset({
    "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|end|>", "<|return|>",
    "<end_of_turn>", "<turn|>", "<eos>", "</s>", "<|eot|>", "<EOT>", "<|END_OF_TURN_TOKEN|>",
    "<|end_of_turn|>", "<｜end▁of▁sentence｜>",
})  # fmt: skip
"""Control tokens that end a turn or a text. The file names one end token; chat models often have two."""

_SPACE = "▁"

_CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_TAIL = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_QWEN2 = rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}|{_TAIL}"
_LLAMA3 = rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}|{_TAIL}"


def _plain() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)


def _single_digits() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), _plain()])


def _pattern(regex: str) -> Callable[[], pre_tokenizers.PreTokenizer]:
    def build() -> pre_tokenizers.PreTokenizer:
        return pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(regex), behavior="isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )

    return build


_SPLITTERS: dict[str, Callable[[], pre_tokenizers.PreTokenizer]] = {
    **dict.fromkeys(("default", "gpt-2", "phi-2", "mpt", "olmo"), _plain),
    **dict.fromkeys(("smollm", "starcoder", "refact", "command-r", "codeshell"), _single_digits),
    **dict.fromkeys(("qwen2", "stablelm2", "deepseek-r1-qwen"), _pattern(_QWEN2)),
    **dict.fromkeys(("llama3", "llama-v3", "llama-bpe", "falcon3"), _pattern(_LLAMA3)),
}
_WHOLE_WORDS_FIRST = frozenset({"llama3", "llama-v3", "llama-bpe", "falcon3"})
"""Vocabularies in which a piece that is a token as a whole is not built up by merges."""


def gguf_tokenizer(file: GgufFile) -> PreTrainedTokenizerFast:
    """Builds the tokenizer of a GGUF file, chat template included.

    Raises:
        ModelError: the file's kind of tokenizer, or its way of splitting text, is not known.
    """
    kind = file.metadata["tokenizer.ggml.model"]
    if kind == "gpt2":
        backend = _byte_level(file)
    elif kind in ("llama", "gemma4"):
        backend = _sentencepiece(file)
    else:
        raise ModelError(
            f"{file.path}: tokenizer.ggml.model is {kind!r}, and only 'gpt2' (byte-level) and 'llama' "
            "(SentencePiece) tokenizers can be read from GGUF files."
        )
    tokens = file.tokens
    special = {name: file.special_id(role) for name, role in _ROLES.items()}
    tokenizer: PreTrainedTokenizerFast = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        clean_up_tokenization_spaces=False,
        **{name: tokens[token] for name, token in special.items() if token is not None},
    )
    tokenizer.chat_template = file.metadata.get("tokenizer.chat_template")
    _check_ids(file, tokenizer)
    return tokenizer


def end_ids(file: GgufFile) -> list[int]:
    """The end token that the file names, and every control token known to end a turn or a text."""
    named = {file.special_id(role) for role in ("eos", "eot", "eom")} - {None}
    marks = {
        token
        for token, (text, kind) in enumerate(zip(file.tokens, file.token_types, strict=True))
        if kind == CONTROL and text in _END_MARKS
    }
    return sorted(token for token in named | marks if token is not None)


def _byte_level(file: GgufFile) -> Tokenizer:
    pre = file.metadata.get("tokenizer.ggml.pre", "default")
    if pre not in _SPLITTERS:
        raise ModelError(
            f"{file.path}: tokenizer.ggml.pre is {pre!r}, a way of splitting text that is not known here "
            f"(known are {', '.join(sorted(_SPLITTERS))}); use the model's safetensors directory instead."
        )
    if "tokenizer.ggml.merges" not in file.metadata:
        raise ModelError(f"{file.path}: tokenizer.ggml.merges is missing, so text cannot be tokenized.")
    pairs = [tuple(merge.split(" ")) for merge in file.metadata["tokenizer.ggml.merges"]]
    model = BPE(vocab=_used(file), merges=pairs, ignore_merges=pre in _WHOLE_WORDS_FIRST)
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = _SPLITTERS[pre]()
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = _framing(file)
    _add_whole_tokens(file, tokenizer)
    return tokenizer


def _used(file: GgufFile) -> dict[str, int]:
    """The vocabulary without the padding at its end, which the original tokenizer does not know either."""
    types, tokens = file.token_types, file.tokens
    size = len(tokens)
    while size and types[size - 1] == UNUSED:
        size -= 1
    return {token: index for index, token in enumerate(tokens[:size])}


def _sentencepiece(file: GgufFile) -> Tokenizer:
    tokenizer = AutoTokenizer.from_pretrained(str(file.path.parent), gguf_file=file.path.name, local_files_only=True)
    backend: Tokenizer = tokenizer.backend_tokenizer
    _add_whole_tokens(file, backend)
    return backend


def _add_whole_tokens(file: GgufFile, tokenizer: Tokenizer) -> None:
    """Keeps control and user-defined tokens in one piece; all of them are in the vocabulary already."""
    present = tokenizer.get_added_tokens_decoder()
    for index, (text, kind) in enumerate(zip(file.tokens, file.token_types, strict=True)):
        if kind in (CONTROL, USER_DEFINED) and index not in present:
            special = kind == CONTROL
            add = tokenizer.add_special_tokens if special else tokenizer.add_tokens
            add([AddedToken(_spelling(tokenizer, text, index), normalized=False, special=special)])


def _spelling(tokenizer: Tokenizer, text: str, index: int) -> str:
    """How the rebuilt vocabulary spells a token: SentencePiece has another sign for the space."""
    respelled = text.replace(" ", _SPACE)
    return respelled if tokenizer.token_to_id(respelled) == index else text


def _framing(file: GgufFile) -> processors.PostProcessor:
    """What encoding adds around a text: a start token where the file asks for one, else nothing."""
    bos = file.special_id("bos")
    if bos is None or not file.metadata.get("tokenizer.ggml.add_bos_token", False):
        return processors.ByteLevel(trim_offsets=False)
    text = file.tokens[bos]
    return processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(single=[text, "$A"], special_tokens=[(text, bos)]),
        ]
    )


def _check_ids(file: GgufFile, tokenizer: PreTrainedTokenizerFast) -> None:
    """Every whole token must have the id that the file gives it."""
    for index, (text, kind) in enumerate(zip(file.tokens, file.token_types, strict=True)):
        if kind not in (CONTROL, USER_DEFINED):
            continue
        rebuilt = tokenizer.convert_tokens_to_ids(_spelling(tokenizer.backend_tokenizer, text, index))
        if rebuilt != index:
            raise ModelError(
                f"{file.path}: tokenizer.ggml.tokens has {text!r} at {index}, but the rebuilt tokenizer "
                f"gives it the id {rebuilt}; the file has that token twice, so it is refused."
            )

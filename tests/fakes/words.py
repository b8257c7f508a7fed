"""A tokenizer whose tokens are exactly the given words."""

from __future__ import annotations

from collections.abc import Sequence

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from lookup_spec.text.detokenize import Vocabulary
from lookup_spec.text.matcher import Grammars
from lookup_spec.text.output import TextOutput

EOS = "<eos>"


class Words:
    """Word to id and back; id 0 is the end token.

    Args:
        words: the tokens; any text, a whole line or a part of a word.
    """

    def __init__(self, words: Sequence[str]) -> None:
        byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        self._ids = {EOS: 0, **{word: i for i, word in enumerate(dict.fromkeys(words), 1) if word != EOS}}
        spelled = {word if word == EOS else byte_level.pre_tokenize_str(word)[0][0]: i for word, i in self._ids.items()}
        tokenizer = Tokenizer(models.WordLevel(spelled, unk_token=EOS))
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.add_special_tokens([AddedToken(EOS, special=True, normalized=False)])
        self._vocabulary = Vocabulary(PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=EOS))

    def __len__(self) -> int:
        return max(self._ids.values()) + 1

    def ids(self, *words: str) -> tuple[int, ...]:
        return tuple(self._ids[word] for word in words)

    def text(self, ids: Sequence[int]) -> str:
        """What ids spell."""
        return b"".join(map(self._vocabulary.piece, ids)).decode()

    def grammars(self) -> Grammars:
        """What makes matchers for answers in these words; the longest word that fits is the usual one."""
        return Grammars(self._vocabulary, len(self), self._longest, [0])

    def _longest(self, text: str) -> list[int]:
        ids = []
        while text:
            word = max((word for word in self._ids if word != EOS and text.startswith(word)), key=len)
            ids.append(self._ids[word])
            text = text[len(word) :]
        return ids

    def output(self, stops: Sequence[str] = ()) -> TextOutput:
        """A new text output for one answer."""
        return TextOutput(self._vocabulary, stops)

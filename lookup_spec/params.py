"""How to choose tokens and when to stop: one request's settings, checked once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypedDict

from lookup_spec.errors import InvalidRequestError
from lookup_spec.grammar import Grammar

MAX_STOPS = 32
MAX_LOGPROBS = 20

Priority = Literal["interactive", "batch"]
"""How urgent a request is: whoever waits for an answer comes before whatever works through a pile."""


def _in_range(name: str, value: float, low: float, high: float, advice: str) -> None:
    if not math.isfinite(value) or not low <= value <= high:
        raise InvalidRequestError(f"{name} is {value!r}; {advice}.", param=name)


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """Everything that decides one answer besides the prompt and the model.

    Attributes:
        max_tokens: most tokens to generate; None means up to the end of the context.
        temperature: 0 is greedy.
        top_p: keep the smallest set of most likely tokens whose probability reaches this.
        top_k: keep this many most likely tokens; 0 keeps all.
        min_p: keep tokens at least this likely relative to the likeliest.
        repetition_penalty: divides positive and multiplies negative logits of tokens already in the text,
            prompt or answer.
        presence_penalty: taken once from each token already in the answer.
        frequency_penalty: taken from each token as often as it stands in the answer.
        logit_bias: token id to a value added to its logit.
        bad_words: token sequences that may never appear in the answer.
        min_tokens: end tokens and stop token ids are impossible before this many tokens.
        stop: strings that end the answer; they are not part of it.
        stop_token_ids: tokens that end the answer, besides the model's own end tokens; not part of it.
        ignore_eos: the model's own end tokens do not end the answer.
        seed: of the sampling noise; the same seed gives the same text. None draws one.
        logprobs: how many most likely tokens to report with each token; None reports nothing.
        grammar: the form that the answer must have; None allows any. The answer ends only where the grammar allows
            it to, or unfinished for want of room, and it does end where nothing more may follow.
    """

    max_tokens: int | None = None
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    bad_words: tuple[tuple[int, ...], ...] = ()
    min_tokens: int = 0
    stop: tuple[str, ...] = ()
    stop_token_ids: frozenset[int] = frozenset()
    ignore_eos: bool = False
    seed: int | None = None
    logprobs: int | None = None
    grammar: Grammar | None = None

    def __post_init__(self) -> None:
        if self.max_tokens is not None and self.max_tokens < 0:
            raise InvalidRequestError(
                f"max_tokens is {self.max_tokens}; give 0 or more, or leave it out.", param="max_tokens"
            )
        _in_range("temperature", self.temperature, 0.0, 100.0, "give 0 (greedy) to 100")
        _in_range("top_p", self.top_p, 0.0, 1.0, "give a number above 0 and up to 1")
        if self.top_p == 0.0:
            raise InvalidRequestError("top_p is 0; give a number above 0 and up to 1.", param="top_p")
        _in_range("min_p", self.min_p, 0.0, 1.0, "give a number from 0 to 1")
        _in_range("presence_penalty", self.presence_penalty, -100.0, 100.0, "give a number from -100 to 100")
        _in_range("frequency_penalty", self.frequency_penalty, -100.0, 100.0, "give a number from -100 to 100")
        _in_range("repetition_penalty", self.repetition_penalty, 1e-3, 1e3, "give a number from 0.001 to 1000")
        if self.top_k < 0:
            raise InvalidRequestError(f"top_k is {self.top_k}; give 0 (off) or more.", param="top_k")
        if self.min_tokens < 0:
            raise InvalidRequestError(f"min_tokens is {self.min_tokens}; give 0 or more.", param="min_tokens")
        if len(self.stop) > MAX_STOPS:
            raise InvalidRequestError(f"stop has {len(self.stop)} strings; give at most {MAX_STOPS}.", param="stop")
        if any(not text for text in self.stop):
            raise InvalidRequestError("stop holds an empty string; leave it out.", param="stop")
        if any(not word for word in self.bad_words):
            raise InvalidRequestError("bad_words holds an empty word; leave it out.", param="bad_words")
        for token, bias in self.logit_bias.items():
            if token < 0 or not math.isfinite(bias):
                raise InvalidRequestError(
                    f"logit_bias gives token {token} the bias {bias!r}; give a token id and a finite number.",
                    param="logit_bias",
                )
        if self.seed is not None and not 0 <= self.seed < 2**64:
            raise InvalidRequestError(f"seed is {self.seed}; give 0 to 2**64 - 1.", param="seed")
        if self.logprobs is not None and not 0 <= self.logprobs <= MAX_LOGPROBS:
            raise InvalidRequestError(f"logprobs is {self.logprobs}; give 0 to {MAX_LOGPROBS}.", param="logprobs")
        self._check_together()

    def _check_together(self) -> None:
        if self.max_tokens is not None and self.min_tokens > self.max_tokens:
            raise InvalidRequestError(
                f"min_tokens is {self.min_tokens}, more than max_tokens {self.max_tokens}.", param="min_tokens"
            )
        if self.grammar is not None and self.ignore_eos:
            raise InvalidRequestError(
                "ignore_eos does not go with a grammar, which says where the answer ends; leave it out.",
                param="ignore_eos",
            )

    @property
    def greedy(self) -> bool:
        """Whether the likeliest token is always taken."""
        return self.temperature == 0.0


class Sampling(TypedDict, total=False):
    """The forms in which callers like to give settings; meanings as in :class:`SamplingParams`."""

    max_tokens: int | None
    temperature: float
    top_p: float
    top_k: int
    min_p: float
    repetition_penalty: float
    presence_penalty: float
    frequency_penalty: float
    logit_bias: Mapping[int, float]
    bad_words: Sequence[str | Sequence[int]]
    min_tokens: int
    stop: str | Sequence[str]
    stop_token_ids: Sequence[int]
    ignore_eos: bool
    seed: int | None
    logprobs: int | None
    grammar: Grammar | None

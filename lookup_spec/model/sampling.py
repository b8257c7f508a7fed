"""Choosing one token from one row of logits, the same with and without drafts.

Every choice is made on the path that the answer really takes: a tree is walked with one choice per accepted row,
so a sampler only ever moves forward and sees exactly what it would have seen in plain decoding.

Sampling takes the token that maximizes ``log p - log E`` with one exponential variate ``E`` per vocabulary entry
(the Gumbel-max trick, Gumbel 1954; in this form Efraimidis & Spirakis 2006). The variates come from the
counter-based generator Philox (Salmon et al., SC'11) keyed by (seed, position), so a position's noise does not
depend on whether, or in how wide a step, it was drafted.
"""

from __future__ import annotations

import math
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lookup_spec.errors import InvalidRequestError, LookupSpecError
from lookup_spec.grammar import Matcher
from lookup_spec.params import SamplingParams

_FIRST_LOOK = 512  # tokens sorted first for top-p; the whole vocabulary only if these do not reach it


@dataclass(frozen=True, slots=True)
class TokenLogprobs:
    """Natural log-probabilities under the model's own distribution, before any processing.

    Attributes:
        token: the chosen token's id.
        logprob: its log-probability.
        top: the likeliest tokens and their log-probabilities, best first.
    """

    token: int
    logprob: float
    top: tuple[tuple[int, float], ...]


class DistributionError(LookupSpecError):
    """The model gave numbers from which no token can be chosen."""


class Sampler:
    """The chooser of one answer, in order from its first token.

    Args:
        params: the request's settings.
        prompt: its token ids.
        end_ids: tokens that would end the answer; impossible before ``params.min_tokens``.
        vocab_size: entries in a row of logits.
        matcher: tells what the grammar allows, at the start of the answer; None allows everything. It is moved along.

    Raises:
        InvalidRequestError: a setting names a token outside the vocabulary.
    """

    def __init__(
        self,
        params: SamplingParams,
        prompt: Sequence[int],
        end_ids: Iterable[int],
        vocab_size: int,
        matcher: Matcher | None = None,
    ) -> None:
        _check_ids(params, vocab_size)
        self._matcher = matcher
        self._params = params
        self._end_ids = torch.tensor(sorted(i for i in end_ids if i < vocab_size), dtype=torch.long)
        self._seed = secrets.randbits(63) if params.seed is None else params.seed
        self._text = list(prompt)
        self._seen = set(prompt)
        self._counts: Counter[int] = Counter()
        self._processed = bool(
            params.logit_bias
            or params.bad_words
            or params.min_tokens
            or params.repetition_penalty != 1.0
            or params.presence_penalty
            or params.frequency_penalty
        )

    def over(self, logits: Tensor) -> Callable[[int], tuple[int, TokenLogprobs | None]]:
        """The chooser for one step's rows.

        Args:
            logits: ``[rows, vocab]`` float32.

        Returns:
            A function that takes a row's index and returns the chosen token and, if asked for, its
            log-probabilities. Call it once per accepted row, in order.
        """
        if self._params.greedy and not self._processed and self._params.logprobs is None:
            # One transfer for all rows; the rest of this class is not needed.
            scores, best = (column.tolist() for column in logits.max(dim=-1))

            def pick(row: int) -> tuple[int, None]:
                _require_number(scores[row])
                token = best[row]
                if self._matcher is not None and not self._matcher.allows(token):
                    token = _likeliest_allowed(self._masked(logits[row].clone()))
                self._remember(token)
                return token, None

            return pick
        return lambda row: self._choose(logits[row])

    def _choose(self, raw: Tensor) -> tuple[int, TokenLogprobs | None]:
        logits = self._process(raw.clone()) if self._processed or self._matcher is not None else raw
        _require_number(float(logits.max()))
        token = int(logits.argmax()) if self._params.greedy else self._sample(logits)
        logprobs = None if self._params.logprobs is None else _logprobs(raw, token, self._params.logprobs)
        self._remember(token)
        return token, logprobs

    def _remember(self, token: int) -> None:
        self._text.append(token)
        self._seen.add(token)
        self._counts[token] += 1
        if self._matcher is not None and token not in self._matcher.ends:
            self._matcher.push([token])

    def _process(self, logits: Tensor) -> Tensor:
        params = self._params
        if params.repetition_penalty != 1.0:
            ids = torch.tensor(sorted(self._seen), device=logits.device)
            scores = logits[ids]
            penalty = params.repetition_penalty
            logits[ids] = torch.where(scores < 0, scores * penalty, scores / penalty)
        if self._counts and (params.presence_penalty or params.frequency_penalty):
            ids = torch.tensor(list(self._counts), device=logits.device)
            times = torch.tensor(list(self._counts.values()), device=logits.device, dtype=logits.dtype)
            logits[ids] -= params.presence_penalty + params.frequency_penalty * times
        for token, bias in params.logit_bias.items():
            logits[token] += bias
        for *before, last in params.bad_words:
            if self._text[len(self._text) - len(before) :] == before:
                logits[last] = -torch.inf
        if self._counts.total() < params.min_tokens:
            logits[self._end_ids.to(logits.device)] = -torch.inf
        return logits if self._matcher is None else self._masked(logits)

    def _masked(self, logits: Tensor) -> Tensor:
        """The logits without what the grammar forbids. Rows that nobody comes to are never masked."""
        assert self._matcher is not None
        bits = np.frombuffer(self._matcher.mask(), dtype=np.uint8)
        allowed = np.zeros(logits.shape[0], dtype=np.bool_)
        known = np.unpackbits(bits, bitorder="little")[: len(allowed)]
        allowed[: len(known)] = known
        allowed[self._end_ids.numpy()] |= self._matcher.may_end
        return logits.masked_fill_(torch.from_numpy(~allowed).to(logits.device), -torch.inf)

    def _sample(self, logits: Tensor) -> int:
        # Not every device has float64, and the noise is made on the CPU. The likeliest becomes 0 first: at any
        # temperature above 0, however small, it stays a number.
        logits = logits.cpu()
        scores = (logits - logits.max()).double() / self._params.temperature
        ids, log_p = _filtered(scores, self._params)
        noise = _exponentials(self._seed, len(self._text), logits.shape[0])
        return int(ids[np.argmax(log_p - np.log(noise[ids]))])


def _exponentials(seed: int, position: int, size: int) -> NDArray[np.float64]:
    """One standard exponential variate per vocabulary entry; the same for the same seed and position."""
    return np.random.Generator(np.random.Philox(key=seed, counter=position << 64)).standard_exponential(size)


def _filtered(scores: Tensor, params: SamplingParams) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Ids that may be sampled and their unnormalized log-probabilities, top-k before top-p before min-p."""
    if params.top_k and params.top_k < scores.shape[0]:
        scores, ids = scores.topk(params.top_k)
    else:
        ids = torch.arange(scores.shape[0])
    log_p = torch.log_softmax(scores.double(), dim=-1)
    if params.top_p < 1.0:
        log_p, order = _likeliest(log_p, params.top_p)
        before = log_p.exp().cumsum(-1) - log_p.exp()
        kept = int((before < params.top_p).sum().clamp(min=1))
        log_p, ids = log_p[:kept], ids[order[:kept]]
    if params.min_p > 0.0:
        keep = log_p >= log_p.max() + math.log(params.min_p)
        log_p, ids = log_p[keep], ids[keep]
    return ids.numpy(), log_p.numpy()


def _likeliest(log_p: Tensor, top_p: float) -> tuple[Tensor, Tensor]:
    """The likeliest tokens in falling order, enough of them to reach ``top_p``."""
    for size in (_FIRST_LOOK, log_p.shape[0]):
        values, ids = log_p.topk(min(size, log_p.shape[0]))
        if values.exp().sum() >= top_p:
            break
    return values, ids


def _logprobs(raw: Tensor, token: int, top: int) -> TokenLogprobs:
    log_p = torch.log_softmax(raw, dim=-1)
    values, ids = log_p.topk(min(top, log_p.shape[0]))
    return TokenLogprobs(token, float(log_p[token]), tuple(zip(ids.tolist(), values.tolist(), strict=True)))


def _likeliest_allowed(logits: Tensor) -> int:
    best, token = logits.max(dim=-1)
    _require_number(float(best))
    return int(token)


def _require_number(best: float) -> None:
    if not math.isfinite(best):
        raise DistributionError(
            f"The likeliest token's logit is {best}, so none can be chosen: either the model computes no numbers in "
            "this dtype, or logit_bias, bad_words and the grammar leave no token; try float32 or loosen them."
        )


def _check_ids(params: SamplingParams, vocab_size: int) -> None:
    named = {
        "logit_bias": params.logit_bias.keys(),
        "bad_words": [i for word in params.bad_words for i in word],
        "stop_token_ids": params.stop_token_ids,
    }
    for name, ids in named.items():
        for token in ids:
            if not 0 <= token < vocab_size:
                raise InvalidRequestError(
                    f"{name} names token {token}, but this model's tokens are 0 to {vocab_size - 1}.", param=name
                )

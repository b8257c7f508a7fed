"""One request's state, from prompt to last token."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from torch import Tensor

from lookup_spec.engine.budget import Wish
from lookup_spec.engine.choices import Choices
from lookup_spec.engine.meter import Meter
from lookup_spec.errors import ContextLengthError, InvalidRequestError
from lookup_spec.grammar import Matcher
from lookup_spec.model.cache import KVCache
from lookup_spec.model.forward import Rows
from lookup_spec.model.runner_ups import runner_ups
from lookup_spec.model.sampling import Sampler, TokenLogprobs
from lookup_spec.params import SamplingParams
from lookup_spec.propose.prompt import Prompt
from lookup_spec.propose.protocol import Proposer
from lookup_spec.propose.seen import Seen, rejected
from lookup_spec.propose.tree import DraftTree
from lookup_spec.propose.walk import walk
from lookup_spec.stats import Stats

FinishReason = Literal["stop", "length", "cancelled"]
_PROBE_AFTER = 32  # steps without a draft that paid; then one is checked anyway, for things may have changed


class Output(Protocol):
    """Turns one answer's tokens into text and finds stop strings in it; the text lane provides it."""

    def push(self, token: int) -> bool:
        """Takes the next token; true if it completed a stop string."""

    def take(self) -> str:
        """Text that became certain since the last call."""

    def finish(self) -> str:
        """All text not yet taken, at an end that is not a stop string; afterwards nothing is left."""

    @property
    def kept_tokens(self) -> int:
        """How many of the pushed tokens the text passed on so far needs; the others are held back with theirs."""

    @property
    def stop(self) -> str | None:
        """The stop string that completed, if one did."""


@dataclass(frozen=True, slots=True)
class Piece:
    """What was added to an answer.

    Attributes:
        text: text that became certain. What may yet turn out to belong to a stop string is held back, with its
            tokens.
        token_ids: the tokens added.
        sources: for each token, what proposed it; ``""`` if the target alone did.
        logprobs: one entry for each token, or empty if not asked for.
        stats: what the answer cost so far.
        finish_reason: why the answer ended; only on the last piece.
        stop: the stop string that ended it, if one did; only on the last piece.
    """

    text: str
    token_ids: tuple[int, ...]
    sources: tuple[str, ...]
    logprobs: tuple[TokenLogprobs, ...]
    stats: Stats
    finish_reason: FinishReason | None = None
    stop: str | None = None


@dataclass(frozen=True, slots=True)
class _Token:
    id: int
    source: str
    logprobs: TokenLogprobs | None


class Session:
    """One request, stepped by a runner.

    The only place where stop strings, end tokens, ``max_tokens`` and the context limit cut, inside an accepted run
    too. After every step the cache holds all tokens but the last, which is pending.

    Args:
        prompt: token ids and known segments.
        params: how to choose and when to stop.
        proposer: guesses the continuation; it must be new.
        output: turns tokens into text; it must be new. None for requests that want ids only, without stop strings.
        cache: an empty cache.
        end_ids: the model's end tokens.
        context_length: most tokens the model can hold.
        vocab_size: entries in a row of logits.
        ended: called once, when nothing more will come.
        matcher: of ``params.grammar``, at the start of the answer; None without a grammar.

    Raises:
        InvalidRequestError: the request can never be served.
    """

    def __init__(
        self,
        prompt: Prompt,
        params: SamplingParams,
        *,
        proposer: Proposer,
        output: Output | None,
        cache: KVCache,
        end_ids: Iterable[int],
        context_length: int,
        vocab_size: int,
        ended: Callable[[], None] = lambda: None,
        matcher: Matcher | None = None,
    ) -> None:
        _check_prompt(prompt, context_length, vocab_size)
        if params.stop and output is None:
            raise InvalidRequestError("stop strings need text output.", param="stop")
        self.params = params
        self.cache = cache
        self.error: Exception | None = None
        self.finish_reason: FinishReason | None = None
        self._prompt_length = len(prompt.ids)
        self._limit = min(
            context_length - self._prompt_length,
            context_length if params.max_tokens is None else params.max_tokens,
        )
        self._ends = (frozenset() if params.ignore_eos else frozenset(end_ids)) | params.stop_token_ids
        self._matcher = matcher
        self._sampler = Sampler(params, prompt.ids, self._ends, vocab_size, matcher)
        self._tokens = list(prompt.ids)
        self._proposer = proposer
        self._ended = ended
        self._output = output
        self._fresh: list[_Token] = []
        self._taken = 0
        self._stopped = False
        self._closed = False
        self._tree: DraftTree | None = None
        self._known = 0
        self._unchecked = 0
        self._delivered = 0
        self._meter = Meter()
        proposer.begin(prompt)
        if self._limit == 0:
            self.finish_reason = "length"

    @property
    def finished(self) -> bool:
        """Whether nothing more will come; :attr:`finish_reason` or :attr:`error` tells why."""
        return self.finish_reason is not None or self.error is not None

    @property
    def tokens(self) -> Sequence[int]:
        """Prompt and answer so far. The cache holds the first of them; the last one is pending."""
        return self._tokens

    @property
    def missing(self) -> int:
        """Tokens that are not in the cache yet, besides the pending one."""
        return len(self._tokens) - 1 - self.cache.length

    @property
    def most_tokens(self) -> int:
        """Most rows that the cache will ever have to hold, those of rejected drafts included."""
        return self._prompt_length + self._limit

    def reuse(self, tokens: int) -> None:
        """The cache was given the first tokens, computed elsewhere."""
        self._meter.reuse(tokens)

    def wish(self, limit: int, chunk: int) -> Wish:
        """Decides what to compute next: prompt tokens that are not in the cache yet, and the draft tree behind them.

        Args:
            limit: most drafted nodes.
            chunk: most prompt tokens at a time; while more are left, nothing is drafted.
        """
        self._meter.start()
        missing = self.missing
        self._known = min(missing, chunk)
        # A tree of d drafts can yield d + 1 tokens; none may be fed that could never be delivered.
        room = self._limit - self._delivered - 1
        if missing > chunk:
            self._tree = None
            return Wish(chunk, None)
        self._tree = self._proposer.propose(min(limit, room)) if room > 0 else DraftTree.root(self._tokens[-1])
        drafts = self._tree.probabilities[1:]
        least = min(len(drafts), 1) if self._unchecked >= _PROBE_AFTER else 0
        return Wish(missing, drafts, self.cache.length + missing, least)

    def rows(self, drafts: int) -> Rows:
        """The rows wished for, with only the first ``drafts`` drafted nodes."""
        start = self.cache.length
        known = self._tokens[start : start + self._known]
        if self._tree is None:
            return Rows(self.cache, known, range(-1, len(known) - 1), len(known))
        proposed, self._tree = len(self._tree) - 1, self._tree.head(drafts + 1)
        self._meter.plan(proposed, sum(self._tree.probabilities[1:]))
        if proposed:
            self._unchecked = 0 if drafts else self._unchecked + 1
        parents = [*range(-1, len(known) - 1), *(len(known) + parent for parent in self._tree.parents)]
        return Rows(self.cache, [*known, *self._tree.tokens], parents, len(known))

    def advance(self, logits: Tensor) -> None:
        """Takes a step's result.

        Args:
            logits: ``[rows - keep, vocab]`` for the rows last asked for.
        """
        known = range(self._known)
        if self._tree is None:
            self.cache.commit(known)
            return
        choices = Choices(self._sampler.over(logits))
        taken = walk(self._tree, choices)
        # The token chosen after a node is the next node's own; the last one was not drafted.
        sources = [*(self._tree.sources[node] for node in taken.path[1:]), ""]
        # A row without a choice has no log-probabilities either, so nothing is made of it here.
        delivered = self._deliver(list(map(_Token, taken.tokens, sources, choices.logprobs)))
        self._meter.step(self._tree.sources[1:], list(filter(None, sources[:delivered])), self._delivered)
        self.cache.commit([*known, *(self._known + node for node in taken.path[:delivered])])
        self._proposer.observe(taken.tokens[:delivered], self._seen(self._tree, taken.path, logits))
        if self.finished:
            self._ended()
        if choices.error is not None and not self.finished:
            raise choices.error

    def _seen(self, tree: DraftTree, path: tuple[int, ...], logits: Tensor) -> Seen | None:
        """What the proposer wants to hear about a tree of which ``path`` was accepted."""
        wanted = 0 if self.finished else self._proposer.runner_ups
        nodes = rejected(tree, path) if wanted else []
        # Indexing copies the rows; a step that accepts all, in a long copy, has none.
        return Seen(tree, path, *runner_ups(logits[nodes], wanted)) if nodes else None

    def cancel(self) -> None:
        """Ends the session where it stands; does nothing to a finished one."""
        if not self.finished:
            self._finish("cancelled")
            self._ended()

    def fail(self, error: Exception) -> None:
        """Ends the session with an error; text chosen before it is still delivered."""
        if not self.finished:
            self.error = error
            self._meter.end()
            self._ended()

    def take(self) -> Piece | None:
        """What came since the last call, or None if nothing did.

        Raises:
            Exception: what ended the session, once everything before it has been taken.
        """
        text = self._text()
        settled = self._settled()
        tokens, self._fresh = self._fresh[: settled - self._taken], self._fresh[settled - self._taken :]
        self._taken = settled
        last = self.finish_reason is not None and not self._closed
        if not text and not tokens and not last:
            if self.error is not None:
                raise self.error
            return None
        self._closed = self._closed or last
        return Piece(
            text,
            tuple(token.id for token in tokens),
            tuple(token.source for token in tokens),
            tuple(token.logprobs for token in tokens if token.logprobs is not None),
            self.stats(),
            self.finish_reason if last else None,
            self._output.stop if last and self._output is not None else None,
        )

    def stats(self) -> Stats:
        """Counts and times so far."""
        return self._meter.stats(self._prompt_length, self._delivered)

    def _text(self) -> str:
        if self._output is None:
            return ""
        if self.finished and not self._stopped:
            return self._output.finish()
        return self._output.take()

    def _settled(self) -> int:
        """Answer tokens that no stop string can take back any more."""
        if self._output is None or self.finished:
            return self._delivered
        return self._output.kept_tokens

    def _deliver(self, tokens: list[_Token]) -> int:
        """Appends tokens up to whatever ends the answer; returns how many."""
        for count, token in enumerate(tokens):
            if token.id in self._ends:
                self._finish("stop")
                return count
            self._tokens.append(token.id)
            self._fresh.append(token)
            self._delivered += 1
            if self._output is not None and self._output.push(token.id):
                self._stopped = True
                self._delivered = self._output.kept_tokens
                del self._fresh[self._delivered - self._taken :]
                self._finish("stop")
                return count + 1
            # The matcher stands behind the last token; there is nothing to choose where only an end may follow.
            if self._matcher is not None and count + 1 == len(tokens) and self._matcher.complete:
                self._finish("stop")
                return count + 1
            if self._delivered == self._limit:
                self._finish("length")
                return count + 1
        return len(tokens)

    def _finish(self, reason: FinishReason) -> None:
        self.finish_reason = reason
        self._meter.end()


def _check_prompt(prompt: Prompt, context_length: int, vocab_size: int) -> None:
    if not prompt.ids:
        raise InvalidRequestError("The prompt is empty; give at least one token.", param="prompt")
    if len(prompt.ids) >= context_length:
        raise ContextLengthError(len(prompt.ids), context_length)
    for token in prompt.ids:
        if not 0 <= token < vocab_size:
            raise InvalidRequestError(
                f"The prompt holds token {token}, but this model's tokens are 0 to {vocab_size - 1}.", param="prompt"
            )

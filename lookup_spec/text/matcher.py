"""Grammars put to use with one tokenizer, by llguidance, which tells within microseconds what may come next."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from llguidance import LLMatcher, LLParserLimits, LLTokenizer
from llguidance.gbnf_to_lark import gbnf_to_lark

from lookup_spec.errors import GrammarError, InvalidRequestError
from lookup_spec.grammar import Grammar, Matcher
from lookup_spec.text.detokenize import Vocabulary

if TYPE_CHECKING:
    from llguidance._lib import JsonCompileOptions

# Between the parts of JSON: one space, or a line break and an indentation. Weak models, left to themselves, never stop.
_SPACE = r"( |\r?\n( {0,40}|\t{0,10}))"
# How JSON is mostly written on one line.
_STYLES: tuple[JsonCompileOptions, ...] = (
    {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "},
    {"whitespace_flexible": False},
)
_LIMITS = LLParserLimits(verbose_errors=False)


class _Tokens:
    """A vocabulary in the form that llguidance asks for.

    Special tokens have no text; no grammar can name them but by their number.
    """

    is_tokenizer_wrapper = True
    bos_token_id = None

    def __init__(self, vocabulary: Vocabulary, size: int, end: int, encode: Callable[[str], Sequence[int]]) -> None:
        pieces = [vocabulary.piece(token) for token in range(size)]
        self.tokens = [piece or b"\xff<%d>" % token for token, piece in enumerate(pieces)]
        self.special_token_ids = [token for token, piece in enumerate(pieces) if not piece]
        self.eos_token_id = end
        self._encode = encode

    def __call__(self, text: str | bytes) -> list[int]:
        return list(self._encode(text if isinstance(text, str) else text.decode()))


class Grammars:
    """Makes matchers for one model's answers. Safe to use from several threads.

    Args:
        vocabulary: bytes of the model's tokens.
        size: entries in a row of its logits.
        encode: a text's usual tokens, for tokens to propose; any others that spell the same are allowed, too.
        ends: the model's end tokens.
    """

    def __init__(
        self, vocabulary: Vocabulary, size: int, encode: Callable[[str], Sequence[int]], ends: Iterable[int]
    ) -> None:
        self._vocabulary = vocabulary
        self._size = size
        self._encode = encode
        self._ends = frozenset(ends)
        self._lock = threading.Lock()
        self._made: LLTokenizer | None = None

    def matcher(self, grammar: Grammar, stop_token_ids: Iterable[int] = ()) -> Matcher:
        """A matcher at the start of an answer.

        Args:
            grammar: the form it must have.
            stop_token_ids: tokens that end it, besides the model's own.

        Raises:
            InvalidRequestError: the grammar has an error, or asks for what cannot be enforced; the message says what.
        """
        tokens = self._tokens()
        source = _source(grammar)
        refused, said = LLMatcher.validate_grammar_with_warnings(source, tokens, limits=_LIMITS)
        if not refused:
            inner = LLMatcher(tokens, source, log_level=0, limits=_LIMITS)
            if not inner.is_error():
                return _Matcher(inner, self._ends.union(stop_token_ids))
            said = [inner.get_error()]
        raise _refusal(grammar, " ".join(said))

    def habits(self, grammar: Grammar) -> list[Matcher]:
        """Matchers of narrower grammars that answers mostly keep to: JSON on one line, with spaces and without.

        Args:
            grammar: one for which there is a matcher.
        """
        if grammar.kind != "json_schema":
            return []
        sources = [
            LLMatcher.grammar_from_json_schema(grammar.text, defaults={**style, "lenient": grammar.lenient})
            for style in _STYLES
        ]
        return [
            _Matcher(LLMatcher(self._tokens(), source, log_level=0, limits=_LIMITS), self._ends) for source in sources
        ]

    def _tokens(self) -> LLTokenizer:
        """The vocabulary as llguidance keeps it; made when first asked for, which takes about a second."""
        with self._lock:
            if self._made is None:
                ends = sorted(token for token in self._ends if token < self._size)
                wrapped = _Tokens(self._vocabulary, self._size, ends[0] if ends else 0, self._encode)
                self._made = LLTokenizer(wrapped, n_vocab=self._size, eos_token=ends or None)  # type: ignore[arg-type]
            return self._made


class _Matcher:
    def __init__(self, inner: LLMatcher, ends: frozenset[int]) -> None:
        self.ends = ends
        self._inner = inner

    @property
    def may_end(self) -> bool:
        return self._inner.is_accepting()

    @property
    def complete(self) -> bool:
        return self._inner.is_stopped() and not self._inner.is_error()

    def allows(self, token: int) -> bool:
        if token in self.ends and self.may_end:
            return True
        forced = self.forced()
        return token == forced[0] if forced else bool(self._inner.validate_tokens([token]))

    def mask(self) -> bytes:
        if self.complete:
            return b""
        mask = None if self._inner.is_error() else self._inner.compute_bitmask()
        if mask is None or self._inner.is_error():
            said = self._inner.get_error().splitlines()
            raise GrammarError(
                f"The grammar cannot be followed any further ({said[0] if said else 'no reason given'}); simplify it."
            )
        return mask

    def push(self, tokens: Sequence[int]) -> int:
        return self._inner.try_consume_tokens(list(tokens))

    def back(self, count: int) -> None:
        if count:
            self._inner.rollback(count)

    def fork(self) -> Matcher:
        return _Matcher(self._inner.deep_copy(), self.ends)

    def forced(self) -> Sequence[int]:
        return () if self._inner.is_stopped() else self._inner.compute_ff_tokens()


def _source(grammar: Grammar) -> str:
    """A grammar in llguidance's own form."""
    try:
        if grammar.kind == "json_schema":
            options: JsonCompileOptions = {"whitespace_pattern": _SPACE, "lenient": grammar.lenient}
            return LLMatcher.grammar_from_json_schema(grammar.text, defaults=options)
        if grammar.kind == "regex":
            return LLMatcher.grammar_from_regex(grammar.text)
        text = gbnf_to_lark(grammar.text) if grammar.kind == "gbnf" else grammar.text
        return LLMatcher.grammar_from_lark(text)
    except Exception as error:  # the reader of GBNF raises no narrower one
        raise _refusal(grammar, str(error)) from error


def _refusal(grammar: Grammar, said: str) -> InvalidRequestError:
    kinds = {"json_schema": "JSON schema", "regex": "regular expression", "lark": "grammar", "gbnf": "grammar"}
    first = said.strip().splitlines()[0] if said.strip() else "no reason given"
    message = f"The {kinds[grammar.kind]} in {grammar.param} cannot be followed ({first.rstrip('.')}); change it."
    return InvalidRequestError(message, param=grammar.param)

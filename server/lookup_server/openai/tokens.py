"""What replies say about single tokens: their text, their log-probabilities, and what proposed them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeAlias

from lookup_server.token_texts import TokenTexts
from lookup_spec.engine.session import Piece
from lookup_spec.model.sampling import TokenLogprobs
from lookup_spec.pipeline.engine import Engine
from lookup_spec.text.detokenize import Detokenizer, Vocabulary

Json: TypeAlias = dict[str, Any]

_LEAST = -9999.0  # OpenAI's number for an impossible token; JSON has no infinity


def token_bytes(engine: Engine, token: int) -> bytes:
    """A token's bytes; a special token, which is never part of a text, goes by its name."""
    return engine.vocabulary.piece(token) or str(engine.tokenizer.convert_ids_to_tokens(token) or "").encode()


def chat_logprobs(engine: Engine, entries: Sequence[TokenLogprobs]) -> list[Json]:
    """Log-probabilities as chats give them, one entry for each token."""

    def entry(token: int, logprob: float) -> Json:
        piece = token_bytes(engine, token)
        return {
            "token": piece.decode(errors="replace"),
            "logprob": max(logprob, _LEAST),
            "bytes": list(piece),
        }

    return [{**entry(one.token, one.logprob), "top_logprobs": [entry(*other) for other in one.top]} for one in entries]


class CompletionLogprobs:
    """Log-probabilities of one answer as text completions give them, with each token's place in the text.

    Args:
        engine: whose vocabulary it is.
        top: how many likeliest tokens were asked for.
        continuing: the answer goes on in the middle of the prompt's text.
    """

    def __init__(self, engine: Engine, top: int, *, continuing: bool) -> None:
        self._engine = engine
        self._top = top
        self._text = Detokenizer(engine.vocabulary, continuing=continuing)
        self._offset = 0

    def take(self, entries: Sequence[TokenLogprobs]) -> Json:
        """The next tokens' entries; offsets count characters from the answer's start."""
        offsets = []
        for entry in entries:
            offsets.append(self._offset)
            self._offset += len(self._text.push(entry.token))
        return {
            "tokens": [self._name(entry.token) for entry in entries],
            "token_logprobs": [max(entry.logprob, _LEAST) for entry in entries],
            "top_logprobs": [self._likeliest(entry) for entry in entries] if self._top else None,
            "text_offset": offsets,
        }

    def _likeliest(self, entry: TokenLogprobs) -> Mapping[str, float]:
        # The chosen token is always among them, as in OpenAI's replies.
        return {
            self._name(token): max(logprob, _LEAST) for token, logprob in ((entry.token, entry.logprob), *entry.top)
        }

    def _name(self, token: int) -> str:
        piece = token_bytes(self._engine, token)
        try:
            return piece.decode()
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in piece)


def join_completion_logprobs(parts: Sequence[Json]) -> Json:
    """The parts of one answer, as one."""
    joined: Json = {"tokens": [], "token_logprobs": [], "top_logprobs": [], "text_offset": []}
    for part in parts:
        for name, values in part.items():
            joined[name] = None if values is None else joined[name] + values
    return joined


class Runs:
    """Which stretches of an answer's text were proposed, and by what. Joined, they are the answer's text.

    Args:
        vocabulary: of the model.
        continuing: the answer goes on in the middle of the prompt's text.
    """

    def __init__(self, vocabulary: Vocabulary, *, continuing: bool) -> None:
        self._tokens = TokenTexts(vocabulary, continuing=continuing)

    def take(self, piece: Piece) -> list[Json]:
        """The stretches of a piece's text."""
        stretches = groupby(self._tokens.take(piece), key=itemgetter(1))
        runs = [{"text": "".join(text for text, _ in tokens), "source": source} for source, tokens in stretches]
        return [run for run in runs if run["text"]]

"""A target whose next token is given by a function of the path, with the cache contract of the real one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lookup_spec.model.cache import in_blocks
from lookup_spec.model.forward import Rows

NextScores = Callable[[tuple[int, ...]], Mapping[int, float]]
"""Path, prompt included, to the scores of some tokens; all others get -10."""


@dataclass(frozen=True)
class TokenRows:
    """Token ids where the real rows are keys and values."""

    tokens: tuple[int, ...]

    @property
    def length(self) -> int:
        return len(self.tokens)

    def part(self, start: int, end: int) -> TokenRows:
        return TokenRows(self.tokens[start:end])

    def clone(self) -> TokenRows:
        return self


class TokenCache:
    """Holds token ids where the real cache holds keys and values; what was not committed is lost."""

    def __init__(self, capacity: int = 0) -> None:
        self.tokens: list[int] = []
        self.capacity = in_blocks(capacity)
        self.grown_unasked = 0
        self._rows: list[int] = []

    @property
    def length(self) -> int:
        return len(self.tokens)

    def write(self, tokens: Sequence[int]) -> None:
        self._rows = list(tokens)
        if len(self.tokens) + len(tokens) > self.capacity:
            self.capacity = in_blocks(len(self.tokens) + len(tokens))
            self.grown_unasked += 1

    def commit(self, path: Sequence[int]) -> None:
        assert list(path) == sorted(set(path)), "rows are committed in ascending order"
        self.tokens.extend(self._rows[row] for row in path)
        self._rows = []

    def reserve(self, capacity: int) -> None:
        self.capacity = max(self.capacity, in_blocks(capacity))

    def rows(self, start: int, end: int) -> TokenRows:
        assert 0 <= start <= end <= len(self.tokens)
        return TokenRows(tuple(self.tokens[start:end]))

    def append(self, rows: TokenRows) -> None:
        self.tokens.extend(rows.tokens)
        assert len(self.tokens) <= self.capacity, "room is reserved first"

    def detach(self, start: int, end: int) -> TokenRows:
        rows = self.rows(start, end)
        self.clear()
        return rows

    def clear(self) -> None:
        self.tokens, self._rows, self.capacity = [], [], 0

    def truncate(self, length: int) -> None:
        assert length <= len(self.tokens)
        del self.tokens[length:]
        self._rows = []


class ScriptedModel:
    """Stands in for ``PackedModel``: it knows a row's path only from the cache and the row's ancestors."""

    def __init__(self, scores: NextScores, vocab_size: int) -> None:
        self.vocab_size = vocab_size
        self._scores = scores

    def new_cache(self, capacity: int = 0) -> TokenCache:
        return TokenCache(capacity)

    def forward(self, batch: Sequence[Rows]) -> list[Tensor]:
        return [self._logits(rows) for rows in batch]

    def _logits(self, rows: Rows) -> Tensor:
        cached = tuple(rows.cache.tokens)
        rows.cache.write(rows.tokens)
        paths: list[tuple[int, ...]] = []
        for token, parent in zip(rows.tokens, rows.parents, strict=True):
            paths.append((*(paths[parent] if parent >= 0 else cached), token))
        return torch.tensor([self._row(path) for path in paths[rows.keep :]]).reshape(-1, self.vocab_size)

    def _row(self, path: tuple[int, ...]) -> list[float]:
        row = [-10.0] * self.vocab_size
        for token, score in self._scores(path).items():
            row[token] = score
        return row


def recite(scripts: Mapping[tuple[int, ...], Sequence[int]], *, otherwise: int = 0) -> NextScores:
    """Scores of a target that answers each prompt with its script, and babbles ``otherwise`` off the script.

    Behind the end of a script it has no numbers, so whoever asks for a token there gets an error.
    """

    def scores(path: tuple[int, ...]) -> Mapping[int, float]:
        for prompt, script in scripts.items():
            if path[: len(prompt)] == prompt:
                said = path[len(prompt) :]
                if said == tuple(script):
                    return dict.fromkeys(range(1000)[: otherwise + 1], float("nan"))
                return {script[len(said)] if said == tuple(script[: len(said)]) else otherwise: 10.0}
        return {otherwise: 10.0}

    return scores

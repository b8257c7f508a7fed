"""What is chosen along one walk through a tree."""

from __future__ import annotations

from collections.abc import Callable

from lookup_spec.errors import GrammarError
from lookup_spec.model.sampling import DistributionError, TokenLogprobs

_NO_TOKEN = -1  # equals no node's token, so a walk ends there


class Choices:
    """Chooses for one walk and keeps what else the chooser says.

    A row from which nothing can be chosen ends the walk rather than breaking it off: what was chosen before that
    row counts as it would have in plain decoding, which might never have come to it.
    """

    def __init__(self, choose: Callable[[int], tuple[int, TokenLogprobs | None]]) -> None:
        self._choose = choose
        self.logprobs: list[TokenLogprobs | None] = []
        self.error: DistributionError | GrammarError | None = None

    def __call__(self, node: int) -> int:
        try:
            token, logprobs = self._choose(node)
        except (DistributionError, GrammarError) as error:
            self.error = error
            return _NO_TOKEN
        self.logprobs.append(logprobs)
        return token

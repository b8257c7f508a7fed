"""The seam between what guesses and what checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lookup_spec.propose.prompt import Prompt
from lookup_spec.propose.seen import Seen
from lookup_spec.propose.tree import DraftTree


class Proposer(Protocol):
    """Guesses what one request's answer will say next. It never sees the model.

    Attributes:
        runner_ups: of how many likely next tokens it wants to hear for each refused node; 0 saves working them out.
    """

    runner_ups: int

    def begin(self, prompt: Prompt) -> None:
        """Takes in the prompt; called once, first."""

    def propose(self, limit: int) -> DraftTree:
        """A tree of at most ``limit`` drafted nodes besides node 0, the last token known so far.

        Changes nothing that can be seen from outside. Drafting nothing is always a correct answer.
        """

    def observe(self, ids: Sequence[int], seen: Seen | None = None) -> None:
        """Takes in the tokens that the target chose, in order, since the last call.

        Args:
            ids: the chosen tokens.
            seen: what the target said about the tree it checked; None if nothing was refused, or if that is not known.
        """


class NoProposer:
    """Plain decoding: never drafts."""

    runner_ups = 0

    def __init__(self) -> None:
        self._last = 0

    def begin(self, prompt: Prompt) -> None:
        self._last = prompt.ids[-1]

    def propose(self, limit: int) -> DraftTree:  # noqa: ARG002 - the protocol's signature
        return DraftTree.root(self._last)

    def observe(self, ids: Sequence[int], seen: Seen | None = None) -> None:  # noqa: ARG002 - the protocol's signature
        if ids:
            self._last = ids[-1]

"""Proposers that know, or pretend to know, the answer."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from lookup_spec.propose.prompt import Prompt
from lookup_spec.propose.seen import Seen
from lookup_spec.propose.tree import DraftTree


class ScriptProposer:
    """Drafts one chain: whatever ``script`` has at the place that the answer has reached.

    With the true answer as its script it is an oracle; with another it forces wrong drafts.
    """

    runner_ups = 0

    def __init__(self, script: Sequence[int]) -> None:
        self.script = tuple(script)
        self.observed = 0
        self.last = 0

    def begin(self, prompt: Prompt) -> None:
        self.last = prompt.ids[-1]

    def propose(self, limit: int) -> DraftTree:
        return DraftTree.chain(self.last, self.script[self.observed : self.observed + limit], "script")

    def observe(self, ids: Sequence[int], seen: Seen | None = None) -> None:  # noqa: ARG002 - the protocol's signature
        if ids:
            self.last = ids[-1]
            self.observed += len(ids)


class NoisyProposer(ScriptProposer):
    """A chain of the true answer in which each token is wrong with probability ``noise``."""

    def __init__(self, script: Sequence[int], random: Random, vocab: int, noise: float) -> None:
        super().__init__(script)
        self._random, self._vocab, self._noise = random, vocab, noise

    def propose(self, limit: int) -> DraftTree:
        chain = super().propose(limit).tokens[1:]
        return DraftTree.chain(self.last, [self._blurred(token) for token in chain], "noisy")

    def _blurred(self, token: int) -> int:
        return self._random.randrange(self._vocab) if self._random.random() < self._noise else token


class TreeProposer(ScriptProposer):
    """A random tree of up to ``limit`` drafted nodes in which some nodes continue the true answer.

    Args:
        script: the true answer.
        random: source of all choices.
        vocab: wrong tokens come from ``range(vocab)``.
        branching: probability that a node hangs on a random earlier node rather than on the newest; 0 gives
            one deep chain, 1 a bush.
        right: probability that a node tries the true token of its depth.
    """

    def __init__(self, script: Sequence[int], random: Random, vocab: int, *, branching: float, right: float) -> None:
        super().__init__(script)
        self._random, self._vocab, self._branching, self._right = random, vocab, branching, right

    def propose(self, limit: int) -> DraftTree:
        random = self._random
        size = random.randint(0, limit)
        tokens, parents, depths = [self.last], [-1], [0]
        siblings: set[tuple[int, int]] = set()
        for _ in range(4 * size):
            if len(tokens) > size:
                break
            parent = random.randrange(len(tokens)) if random.random() < self._branching else len(tokens) - 1
            token = self._token(depths[parent])
            if (parent, token) not in siblings:
                siblings.add((parent, token))
                tokens.append(token)
                parents.append(parent)
                depths.append(depths[parent] + 1)
        drafted = len(tokens) - 1
        return DraftTree(tuple(tokens), tuple(parents), (1.0,) * (drafted + 1), ("", *["tree"] * drafted))

    def _token(self, depth: int) -> int:
        place = self.observed + depth
        if place < len(self.script) and self._random.random() < self._right:
            return self.script[place]
        return self._random.randrange(self._vocab)


def any_proposer(script: Sequence[int], random: Random, vocab: int) -> ScriptProposer:
    """One of the kinds above, from always right to always wrong, from one chain to a bush."""
    match random.randrange(7):
        case 0:
            return ScriptProposer(script)
        case 1:
            return ScriptProposer([(token + 1) % vocab for token in script])
        case 2:
            return NoisyProposer(script, random, vocab, noise=0.25)
        case 3:
            return TreeProposer(script, random, vocab, branching=0.0, right=0.9)
        case 4:
            return TreeProposer(script, random, vocab, branching=1.0, right=0.5)
        case _:
            return TreeProposer(script, random, vocab, branching=0.4, right=0.75)

"""Guesses under a grammar: what it forbids is not drafted, and what it forces is."""

from __future__ import annotations

from collections.abc import Sequence

from lookup_spec.grammar import Matcher
from lookup_spec.propose.prompt import Prompt
from lookup_spec.propose.protocol import Proposer
from lookup_spec.propose.seen import Seen
from lookup_spec.propose.tree import DraftTree

SOURCE = "grammar"

_FLOOR = 0.025  # behind guesses less likely than this it is not worth looking for what is forced
_LEAVES = 8  # nor behind more guesses than this


class GuidedProposer:
    """Another proposer's guesses, made to fit a grammar.

    Args:
        inner: guesses without knowing the grammar; it must be new.
        matcher: where the answer stands. Whoever chooses tokens moves it; here it is only asked.
    """

    def __init__(self, inner: Proposer, matcher: Matcher) -> None:
        self.runner_ups = inner.runner_ups
        self._inner = inner
        self._matcher = matcher

    def begin(self, prompt: Prompt) -> None:
        self._inner.begin(prompt)

    def propose(self, limit: int) -> DraftTree:
        tree = self._inner.propose(limit)
        return guided(tree, self._matcher, limit) if limit > 0 else tree

    def observe(self, ids: Sequence[int], seen: Seen | None = None) -> None:
        self._inner.observe(ids, seen)


def guided(tree: DraftTree, matcher: Matcher, limit: int) -> DraftTree:
    """A tree without the nodes that a grammar forbids, and with the tokens that it forces.

    Where some guesses are forbidden, the others share their probability: the target, too, chooses among what is left.

    Args:
        tree: guesses that know nothing of the grammar.
        matcher: where the answer stands before the children of node 0; it stays there.
        limit: most nodes besides node 0.
    """
    growing = _Growing(tree)
    growing.force(0, matcher.forced())
    growing.prune(matcher.fork())
    for node in growing.leaves(matcher.ends):
        fork = matcher.fork()
        fork.push(growing.path(node))
        growing.force(node, fork.forced())
    return growing.tree(limit)


class _Growing:
    """A tree whose nodes carry the probability that they come once their parent has."""

    def __init__(self, tree: DraftTree) -> None:
        self._tokens = list(tree.tokens)
        self._parents = list(tree.parents)
        self._sources = list(tree.sources)
        self._shares = [
            1.0 if parent < 0 else probability / (tree.probabilities[parent] or 1.0)
            for probability, parent in zip(tree.probabilities, tree.parents, strict=True)
        ]
        self._children: list[list[int]] = [[] for _ in tree.tokens]
        for node, parent in enumerate(tree.parents[1:], start=1):
            self._children[parent].append(node)

    def force(self, node: int, tokens: Sequence[int]) -> None:
        """Puts a chain behind a node in place of all others; of what was guessed, only what agrees with it stays."""
        for token in tokens:
            found = next((child for child in self._children[node] if self._tokens[child] == token), None)
            if found is None:
                found = len(self._tokens)
                self._tokens.append(token)
                self._parents.append(node)
                self._sources.append(SOURCE)
                self._shares.append(1.0)
                self._children.append([])
            self._shares[found] = 1.0
            self._children[node] = [found]
            node = found

    def prune(self, matcher: Matcher) -> None:
        """Takes out what may not come, and all that follows it; the matcher ends up somewhere else."""
        # Depth first, so that the matcher goes back only as far as it must. With each node, how deep its parent is.
        waiting = [(child, 0) for child in self._children[0]]
        depth = 0
        while waiting:
            node, above = waiting.pop()
            matcher.back(depth - above)
            depth = above
            if self._tokens[node] in matcher.ends:
                self._children[node].clear()
                if matcher.may_end:
                    continue
            if matcher.push([self._tokens[node]]):
                depth += 1
                waiting += [(child, depth) for child in self._children[node]]
            else:
                self._drop(node)

    def leaves(self, ends: frozenset[int]) -> list[int]:
        """The likeliest nodes that nothing follows yet, as far as it is worth looking."""
        probabilities = self._probabilities()
        found = [
            node
            for node in self._reached()
            if node and not self._children[node] and self._tokens[node] not in ends and probabilities[node] >= _FLOOR
        ]
        return sorted(found, key=lambda node: -probabilities[node])[:_LEAVES]

    def path(self, node: int) -> list[int]:
        """The tokens from the child of node 0 to a node."""
        tokens: list[int] = []
        while node:
            tokens.append(self._tokens[node])
            node = self._parents[node]
        return tokens[::-1]

    def tree(self, limit: int) -> DraftTree:
        """All that is left, as far as there is room for it."""
        probabilities = self._probabilities()
        order = sorted(self._reached(), key=lambda node: (-probabilities[node], node))[: limit + 1]
        place = {node: number for number, node in enumerate(order)}
        return DraftTree(
            tuple(self._tokens[node] for node in order),
            tuple(place.get(self._parents[node], -1) for node in order),
            tuple(probabilities[node] for node in order),
            tuple(self._sources[node] for node in order),
        )

    def _probabilities(self) -> list[float]:
        probabilities = [1.0]
        for parent, share in zip(self._parents[1:], self._shares[1:], strict=True):
            probabilities.append(probabilities[parent] * share)
        return probabilities

    def _reached(self) -> list[int]:
        reached = [0]
        for node in reached:
            reached += self._children[node]
        return reached

    def _drop(self, node: int) -> None:
        siblings = self._children[self._parents[node]]
        siblings.remove(node)
        # However rough the probabilities are, those of siblings never come to more than one.
        total = sum(self._shares[sibling] for sibling in siblings)
        left = max(1.0 - self._shares[node], total)
        for sibling in siblings:
            self._shares[sibling] /= left or 1.0

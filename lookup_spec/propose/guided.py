"""Guesses under a grammar: what it forbids is not drafted, and what it forces is.

A grammar leaves open what writers hardly ever vary, like the spaces of JSON. So narrower grammars stand beside it: as
long as the answer keeps to one of them, what that one forces is a good guess.
"""

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
_HITS, _TRIES = 8, 10  # how often a habit's guesses are believed to come true before any was tried
_GOES_ON = 0.95  # how likely each further token of such a guess is, once it began well


class GuidedProposer:
    """Another proposer's guesses, made to fit a grammar.

    Args:
        inner: guesses without knowing the grammar; it must be new.
        matcher: where the answer stands. Whoever chooses tokens moves it; here it is only asked.
        habits: at the start of the answer, matchers of narrower grammars to which it is likely to keep, the likeliest
            first.
    """

    def __init__(self, inner: Proposer, matcher: Matcher, habits: Sequence[Matcher] = ()) -> None:
        self.runner_ups = inner.runner_ups
        self._inner = inner
        self._matcher = matcher
        self._habits = list(habits)
        self._hits, self._tries = _HITS, _TRIES

    def begin(self, prompt: Prompt) -> None:
        self._inner.begin(prompt)

    def propose(self, limit: int) -> DraftTree:
        tree = self._inner.propose(limit)
        return guided(tree, self._matcher, limit, self._habits, self._hits / self._tries) if limit > 0 else tree

    def observe(self, ids: Sequence[int], seen: Seen | None = None) -> None:
        for habit in self._habits[:1]:
            guess = habit.forced()
            if ids and guess:
                self._tries += 1
                self._hits += ids[0] == guess[0]
        self._habits = [habit for habit in self._habits if habit.push(ids) == len(ids)]
        self._inner.observe(ids, seen)


def guided(
    tree: DraftTree, matcher: Matcher, limit: int, habits: Sequence[Matcher] = (), rate: float = 0.0
) -> DraftTree:
    """A tree without the nodes that a grammar forbids, and with the tokens that it forces.

    Where some guesses are forbidden, the others share their probability: the target, too, chooses among what is left.

    Args:
        tree: guesses that know nothing of the grammar.
        matcher: where the answer stands before the children of node 0; it stays there.
        limit: most nodes besides node 0.
        habits: matchers of narrower grammars at the same place.
        rate: how likely what the first of these forces is, where the grammar forces nothing.
    """
    growing = _Growing(tree)
    end = growing.force(0, matcher.forced())
    growing.prune(matcher.fork())
    growing.guess(end, _habit(habits, growing.path(end)), rate)
    for node in growing.leaves(matcher.ends):
        fork = matcher.fork()
        fork.push(growing.path(node))
        end = growing.force(node, fork.forced())
        growing.guess(end, _habit(habits, growing.path(end)), rate)
    return growing.tree(limit)


def _habit(habits: Sequence[Matcher], path: Sequence[int]) -> Sequence[int]:
    """What the first habit that is kept along a path forces behind it."""
    for habit in habits:
        fork = habit.fork()
        if fork.push(path) == len(path):
            return fork.forced()
    return ()


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

    def force(self, node: int, tokens: Sequence[int]) -> int:
        """Puts a chain behind a node in place of all others; of what was guessed, only what agrees with it stays.

        Returns:
            The chain's last node.
        """
        for token in tokens:
            found = self._child(node, token)
            self._shares[found] = 1.0
            self._children[node] = [found]
            node = found
        return node

    def guess(self, node: int, tokens: Sequence[int], rate: float) -> None:
        """Puts a chain behind a node, beside others that become as much less likely."""
        for token in tokens:
            found = self._child(node, token)
            before, after = self._shares[found], max(self._shares[found], rate)
            for other in self._children[node]:
                if other != found and before < 1.0:
                    self._shares[other] *= (1.0 - after) / (1.0 - before)
            self._shares[found] = after
            node, rate = found, _GOES_ON

    def _child(self, node: int, token: int) -> int:
        """The child of a node that holds a token; a new one if there is none yet."""
        for child in self._children[node]:
            if self._tokens[child] == token:
                return child
        child = len(self._tokens)
        self._tokens.append(token)
        self._parents.append(node)
        self._sources.append(SOURCE)
        self._shares.append(0.0)
        self._children.append([])
        self._children[node].append(child)
        return child

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

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lookup_spec.propose import successors
from lookup_spec.propose.guess import Guess, Kind
from lookup_spec.propose.prompt import Prompt
from lookup_spec.propose.proposer import LookupProposer
from lookup_spec.propose.seen import Seen, rejected
from lookup_spec.propose.successors import EDGES, MOST_KEYS, WORDS, Source, Successors
from lookup_spec.propose.tree import DraftTree

TOKENS = 4


class SlowSuccessors:
    """The same, from a list of all that was ever said."""

    def __init__(self) -> None:
        self._heard: list[tuple[int, int, list[tuple[int, int]]]] = []
        self._beside: list[tuple[int, int]] = []

    def take(self, seen: Seen | None) -> None:
        self._beside = []
        if seen is None:
            return
        rows = []
        for node, ids, probabilities in zip(rejected(seen.tree, seen.path), seen.ids, seen.probabilities, strict=True):
            said = [(int(token), bucket(p)) for token, p in zip(ids, probabilities, strict=True)][:WORDS]
            words = [(token, number) for token, number in said if number]
            parent = seen.tree.parents[node]
            rows.append((seen.tree.tokens[parent], seen.tree.tokens[node], words))
            if parent == seen.path[-1] and words:
                self._beside.append(words[0])
        self._beside = self._beside[:3]
        self._heard = [*rows, *self._heard]

    def after(self, before: int, token: int) -> set[tuple[int, int, int]]:
        for first, second, words in self._heard:
            if (first, second) == (before, token):
                if words:
                    return {(Source.PAIR, *word) for word in words}
                break
        found = next((words for _, second, words in self._heard if second == token), [])
        return {(Source.TOKEN, *word) for word in found}

    def pending(self, known: list[int]) -> set[tuple[int, int, int]]:
        found = self.after(known[-2] if len(known) > 1 else -1, known[-1])
        if any(source == Source.PAIR for source, *_ in found):
            return found
        best: dict[int, int] = {}
        for token, number in self._beside:
            best.setdefault(token, number)
        return found | {(Source.BESIDE, *word) for word in best.items()}


def bucket(probability: np.float32) -> int:
    """How many edges a probability reaches; none if it is no number."""
    return sum(bool(probability >= np.float32(edge)) for edge in EDGES)


def facts(guesses: list[Guess]) -> set[tuple[int, int, int]]:
    """Source, token and bucket of each guess; no token twice from one source."""
    assert all(guess.kind == Kind.SUCCESSOR for guess in guesses)
    found = {(guess.length, guess.token, guess.detail) for guess in guesses}
    assert len(found) == len(guesses) == len({fact[:2] for fact in found})
    return found


@st.composite
def heard(draw: st.DrawFn) -> Seen:
    """A small tree, a path through it, and what was said after the other nodes."""
    tokens, parents = [draw(st.integers(0, TOKENS))], [-1]
    for _ in range(draw(st.integers(0, 7))):
        parent, token = draw(st.integers(0, len(tokens) - 1)), draw(st.integers(0, TOKENS))
        if (parent, token) not in zip(parents, tokens, strict=True):
            tokens.append(token)
            parents.append(parent)
    path = [draw(st.integers(0, len(tokens) - 1))]
    while path[0]:
        path.insert(0, parents[path[0]])
    n = len(tokens)
    tree = DraftTree(tuple(tokens), tuple(parents), tuple(0.9**k for k in range(n)), ("", *["x"] * (n - 1)))
    numbers = st.one_of(st.sampled_from([*EDGES, float("nan")]), st.floats(0, 1, width=32))
    width = draw(st.integers(1, WORDS + 1))
    ids = [draw(st.permutations(range(WORDS + 1)))[:width] for _ in rejected(tree, path)]
    said = [draw(st.lists(numbers, min_size=width, max_size=width)) for _ in ids]
    shape = (len(ids), width)
    return Seen(tree, tuple(path), np.array(ids, np.int64).reshape(shape), np.array(said, np.float32).reshape(shape))


@given(st.lists(st.one_of(st.none(), heard()), max_size=6), st.lists(st.integers(0, TOKENS), min_size=1, max_size=3))
def test_what_was_said_last_is_found(said: list[Seen | None], known: list[int]) -> None:
    """After any steps, guesses are those that a search through all that was ever said gives."""
    quick, slow = Successors(), SlowSuccessors()
    for seen in said:
        quick.take(seen)
        slow.take(seen)
    assert facts(quick.pending(known)) == slow.pending(known)
    for before in range(TOKENS + 1):
        for token in range(TOKENS + 1):
            assert facts(quick.after(before, token)) == slow.after(before, token)


def said_after(token: int, words: list[int], probability: float = 0.9) -> Seen:
    """One draft of a token was refused; the target would have gone on with these words."""
    tree = DraftTree((0, token), (-1, 0), (1.0, 0.5), ("", "x"))
    ids, probabilities = np.array([words], np.int64), np.full((1, len(words)), probability, np.float32)
    return Seen(tree, (0,), ids, probabilities)


def test_memory_is_bounded_and_the_latest_is_kept() -> None:
    """However much is said, no more keys are kept than is told, and the last quarter of them is always known."""
    table = Successors()
    for token in range(1, MOST_KEYS):
        table.take(said_after(token, [token + 1]))
        assert len(table) <= MOST_KEYS
    for token in range(MOST_KEYS - MOST_KEYS // 8, MOST_KEYS):
        assert [guess.token for guess in table.after(0, token)] == [token + 1]


def test_successors_of_successors_make_a_branch() -> None:
    """Where nothing can be looked up, a chain of what was said is drafted, and its source is told."""
    proposer = LookupProposer(floor=0.001)
    proposer.begin(Prompt((1, 2)))
    for token in range(10, 14):
        proposer.observe([token + 20], said_after(token, [token + 1]))
    proposer.observe([10])
    tree = proposer.propose(8)
    chain = [node for node in range(len(tree)) if tree.tokens[node] in (11, 12, 13, 14)]
    assert [tree.tokens[node] for node in chain] == [11, 12, 13, 14]
    assert [tree.parents[node] for node in chain] == [0, *chain[:-1]]
    assert {tree.sources[node] for node in chain} == {"successor"}


def test_successors_that_fail_are_drafted_less() -> None:
    """What comes of these guesses is counted like all others: right ones become likelier, wrong ones less likely."""
    chances = {}
    for right in (True, False):
        proposer = LookupProposer(floor=0.0)
        proposer.begin(Prompt((1, 2)))
        proposer.observe([3], said_after(10, [11]))
        for _ in range(20):
            proposer.observe([10, *([11, 12] if right else [13, 12])])
            proposer.observe([3])
        proposer.observe([10])
        tree = proposer.propose(30)
        chances[right] = max(p for p, token in zip(tree.probabilities, tree.tokens, strict=True) if token == 11)
    assert chances[False] < 0.5 < chances[True]


def test_wanting_as_many_words_as_are_kept() -> None:
    """The proposer asks for as many likely tokens as the table keeps."""
    assert LookupProposer.runner_ups == successors.WORDS

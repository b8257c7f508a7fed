from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lookup_spec.propose.tree import DraftTree
from lookup_spec.propose.walk import walk


@st.composite
def trees(draw: st.DrawFn) -> DraftTree:
    tokens, parents = [0], [-1]
    for _ in range(draw(st.integers(0, 12))):
        parent = draw(st.integers(0, len(tokens) - 1))
        taken = {token for token, other in zip(tokens, parents, strict=True) if other == parent}
        token = draw(st.integers(0, 3))
        if token not in taken:
            tokens.append(token)
            parents.append(parent)
    n = len(tokens)
    return DraftTree(tuple(tokens), tuple(parents), tuple(0.9**k for k in range(n)), ("", *["x"] * (n - 1)))


@given(trees(), st.lists(st.integers(0, 3), min_size=13, max_size=13))
def test_walk_equals_trying_every_node(tree: DraftTree, text: list[int]) -> None:
    """The accepted path is the deepest node all of whose path agrees with the target's text."""

    def path(node: int) -> list[int]:
        return [*path(tree.parents[node]), node] if node else [0]

    fits = [p for p in map(path, range(len(tree))) if [tree.tokens[node] for node in p[1:]] == text[: len(p) - 1]]
    expected = max(fits, key=len)
    asked: list[int] = []

    def choose(node: int) -> int:
        asked.append(node)
        return text[len(asked) - 1]

    result = walk(tree, choose)
    assert list(result.path) == expected == asked
    assert list(result.tokens) == text[: len(expected)]

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lookup_bench.layout import Case
from lookup_bench.peers import MAX_MATCH, CopyOracle, LongestMatch, PromptLookup
from lookup_bench.records import Edit
from lookup_bench.replay import Contestant, compare, replay

from lookup_spec.propose.prompt import Prompt, Reference
from lookup_spec.propose.proposer import LookupProposer
from lookup_spec.propose.protocol import NoProposer, Proposer

few = st.lists(st.integers(0, 3), min_size=1, max_size=30)


def slow_replay(proposer: Proposer, prompt: Prompt, answer: Sequence[int], width: int) -> tuple[int, int]:
    """Steps and drafted nodes, by taking every path of every tree apart."""
    proposer.begin(prompt)
    done = steps = drafted = 0
    while done < len(answer):
        tree = proposer.propose(width)
        paths: list[list[int]] = [[]]
        for parent, token in zip(tree.parents[1:], tree.tokens[1:], strict=True):
            paths.append([*paths[parent], token])
        coming = list(answer[done:])
        accepted = max(len(path) for path in paths if path == coming[: len(path)])
        new = coming[: accepted + 1]
        proposer.observe(new)
        done, steps, drafted = done + len(new), steps + 1, drafted + len(paths) - 1
    return steps, drafted


@given(few, few, st.integers(1, 8), st.sampled_from([LookupProposer, PromptLookup, LongestMatch, NoProposer]))
def test_counting_equals_the_slow_twin(
    prompt: list[int], answer: list[int], width: int, make: type[LookupProposer]
) -> None:
    """Steps and drafted nodes are those found by taking every tree apart."""
    count = replay(make(), Prompt.plain(prompt), answer, width)
    assert (count.steps, count.drafted) == slow_replay(make(), Prompt.plain(prompt), answer, width)
    assert count.tokens == len(answer)
    assert len(count.microseconds) == count.steps


def test_plain_decoding_takes_one_step_a_token() -> None:
    """Without drafts every token is a step."""
    count = replay(NoProposer(), Prompt.plain([1, 2]), [1, 2, 1, 2], 8)
    assert (count.steps, count.drafted) == (4, 0)


@given(few, few, st.integers(1, 8))
def test_the_oracle_drafts_the_longest_copy(prompt: list[int], answer: list[int], width: int) -> None:
    """The oracle's draft is the longest part of what comes that stands anywhere in the text so far."""
    oracle = CopyOracle(answer)
    oracle.begin(Prompt.plain(prompt))
    text, done = list(prompt), 0
    while done < len(answer):
        draft = list(oracle.propose(width).tokens[1:])
        lengths = [n for n in range(min(width, len(answer) - done) + 1) if _stands_in(answer[done : done + n], text)]
        assert draft == answer[done : done + max(lengths)]
        new = answer[done : done + len(draft) + 1]
        oracle.observe(new)
        text += new
        done += len(new)


def _stands_in(part: list[int], text: list[int]) -> bool:
    return any(text[start : start + len(part)] == part for start in range(len(text) - len(part) + 1))


@given(few, few)
def test_no_single_copy_beats_the_oracle(prompt: list[int], answer: list[int]) -> None:
    """Prompt lookup and longest match, being single copies, never take fewer steps than the oracle."""
    bound = replay(CopyOracle(answer), Prompt.plain(prompt), answer, 8).steps
    assert replay(PromptLookup(tokens=None), Prompt.plain(prompt), answer, 8).steps >= bound
    assert replay(LongestMatch(), Prompt.plain(prompt), answer, 8).steps >= bound


@given(few.filter(lambda ids: len(ids) > 1))
def test_lookups_equal_brute_force(ids: list[int]) -> None:
    """Prompt lookup takes the first place of the longest n-gram up to two, longest match the last of any length."""

    def places(n: int) -> list[int]:
        return [end for end in range(n, len(ids)) if ids[end - n : end] == ids[-n:]]

    for proposer, longest, pick in ((PromptLookup(), 2, 0), (LongestMatch(), MAX_MATCH, -1)):
        proposer.begin(Prompt.plain(ids))
        found = [places(n)[pick] for n in range(min(longest, len(ids)), 0, -1) if places(n)]
        assert list(proposer.propose(10).tokens[1:]) == (ids[found[0] : found[0] + 10] if found else [])


def test_references_are_part_of_the_context_of_all() -> None:
    """Peers may copy from the client's other files, too."""
    prompt = Prompt((9,), references=(Reference((1, 2, 3, 9, 5, 6), "document"),))
    for proposer in (PromptLookup(), LongestMatch()):
        proposer.begin(prompt)
        assert proposer.propose(2).tokens == (9, 5, 6)


def case(prompt: tuple[int, ...], answer: tuple[int, ...], repo: str = "") -> Case:
    return Case(Edit("", "", "", "", repo=repo), Prompt(prompt), (), answer)


def test_figures_are_totals_over_all_records() -> None:
    """Tokens per step is all tokens over all steps, the fraction is of the oracle's, which comes last."""
    cases = [case((1, 2, 3), (1, 2, 3)), case((7,), (8, 9))]
    plain = Contestant("plain", lambda _: NoProposer())
    oracle = Contestant("oracle", lambda case: CopyOracle(case.answer))
    done: list[int] = []
    rows = compare([plain], oracle, cases, [2, 4], lambda: done.append(1))
    assert [(row.proposer, row.width) for row in rows] == [("plain", 2), ("oracle", 2), ("plain", 4), ("oracle", 4)]
    assert len(done) == 4
    # The oracle needs one step for the first record (two copied, one free) and two for the second.
    assert rows[1].tokens_per_step == pytest.approx(5 / 3)
    assert rows[0].tokens_per_step == 1.0
    assert rows[0].oracle_fraction == pytest.approx(3 / 5)
    assert (rows[0].records, rows[0].tokens, rows[0].drafted_per_step) == (2, 5, 0.0)
    assert rows[1].drafted_per_step == pytest.approx(2 / 3)


def test_figures_of_a_group_are_those_of_its_records_alone() -> None:
    """Groups come in order of their names, all together last, and each has the figures that it has by itself."""
    cases = [case((1, 2, 3), (1, 2, 3, 4), "b"), case((7,), (8, 9), "a"), case((5, 6), (5, 6), "b")]
    longest = Contestant("longest", lambda _: LongestMatch())
    oracle = Contestant("oracle", lambda case: CopyOracle(case.answer))

    def figures(cases: list[Case], group: Callable[[Case], str] | None = None) -> list[dict[str, object]]:
        rows = compare([longest], oracle, cases, [2], lambda: None, group)
        return [{**asdict(row), "us_per_step": 0} for row in rows]

    found = figures(cases, lambda case: case.edit.repo)
    assert [(row["proposer"], row["group"]) for row in found] == [
        ("longest", "a"), ("longest", "b"), ("longest", ""), ("oracle", "a"), ("oracle", "b"), ("oracle", ""),
    ]  # fmt: skip
    for name, part in (("a", cases[1:2]), ("b", cases[::2]), ("", cases)):
        assert [{**row, "group": ""} for row in found if row["group"] == name] == figures(part)

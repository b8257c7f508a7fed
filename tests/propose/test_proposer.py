from __future__ import annotations

import random
import re
import subprocess
import sys
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup_spec.propose.hazard import Hazards
from lookup_spec.propose.prompt import Prompt, Reference, Span
from lookup_spec.propose.proposer import LookupProposer
from lookup_spec.propose.retokenizer import Retokenizer
from lookup_spec.propose.store import SegmentStore
from lookup_spec.propose.tree import DraftTree
from lookup_spec.propose.walk import walk
from tests.fakes.toy_tokens import ToyTokens


def check(tree: DraftTree, pending: int, limit: int) -> None:
    """A tree keeps its contract."""
    assert tree.tokens[0] == pending
    assert (tree.parents[0], tree.probabilities[0], tree.sources[0]) == (-1, 1.0, "")
    assert len(tree) - 1 <= max(limit, 0)
    assert len(tree.tokens) == len(tree.parents) == len(tree.probabilities) == len(tree.sources)
    assert all(0 <= parent < node for node, parent in enumerate(tree.parents) if node)
    children = list(zip(tree.parents, tree.tokens, strict=True))
    assert len(set(children)) == len(children)
    assert list(tree.probabilities) == sorted(tree.probabilities, reverse=True)
    assert all(0.0 < probability <= 1.0 for probability in tree.probabilities)
    assert all(tree.sources[1:])


def steps(proposer: LookupProposer, prompt: Prompt, answer: Sequence[int], limit: int) -> int:
    """Forward passes for an answer; every tree on the way is checked."""
    proposer.begin(prompt)
    pending, done, count = prompt.ids[-1], 0, 0
    while done < len(answer):
        tree = proposer.propose(limit)
        check(tree, pending, limit)
        coming = iter(answer[done:])
        new = answer[done : done + len(walk(tree, lambda _: next(coming, -1)).tokens)]  # noqa: B023
        proposer.observe(new)
        pending, done, count = new[-1], done + len(new), count + 1
    return count


few = st.lists(st.integers(0, 3), max_size=25)


@st.composite
def prompts(draw: st.DrawFn) -> Prompt:
    ids = [*draw(few), 0]
    edges = sorted(draw(st.lists(st.integers(0, len(ids)), max_size=4, unique=True)))
    kinds = st.sampled_from(["base", "document", "message"])
    spans = tuple(Span(a, b, draw(kinds)) for a, b in zip(edges[::2], edges[1::2], strict=False))
    references = tuple(
        Reference(tuple(draw(few)), draw(st.sampled_from(["prediction", "document"])))
        for _ in range(draw(st.integers(0, 2)))
    )
    return Prompt(tuple(ids), spans, references)


@settings(max_examples=200)
@given(prompts(), st.lists(few, max_size=12), st.integers(0, 12))
def test_trees_keep_their_contract(prompt: Prompt, runs: list[list[int]], limit: int) -> None:
    """Whatever prompt, answer and limit: pending first, budget kept, siblings distinct, probabilities falling."""
    proposer = LookupProposer(floor=0.0)
    proposer.begin(prompt)
    pending = prompt.ids[-1]
    for run in [[], *runs]:
        proposer.observe(run)
        pending = run[-1] if run else pending
        check(proposer.propose(limit), pending, limit)


@given(prompts(), st.lists(few.filter(bool), max_size=8), st.lists(st.integers(0, 9), max_size=8))
def test_proposing_changes_nothing(prompt: Prompt, runs: list[list[int]], limits: list[int]) -> None:
    """Proposing any number of times, with any limits, or not at all, leaves later trees the same."""
    quiet, busy = LookupProposer(), LookupProposer()
    quiet.begin(prompt)
    busy.begin(prompt)
    for run in runs:
        for limit in limits:
            assert busy.propose(limit) == busy.propose(limit)
        quiet.observe(run)
        busy.observe(run)
    assert quiet.propose(20) == busy.propose(20)


@given(prompts(), few, st.integers(1, 20))
def test_a_smaller_limit_gives_the_head_of_the_tree(prompt: Prompt, answer: list[int], limit: int) -> None:
    """The tree of a smaller limit is the beginning of the larger one."""
    proposer = LookupProposer(floor=0.0)
    proposer.begin(prompt)
    proposer.observe(answer)
    assert proposer.propose(limit) == proposer.propose(40).head(limit + 1)


def words(seed: int, count: int, vocabulary: int = 500) -> list[int]:
    chooser = random.Random(seed)
    return [chooser.randrange(vocabulary) for _ in range(count)]


def edit_prompt(base: list[int]) -> Prompt:
    return Prompt((*words(99, 10), *base, *words(98, 10)), (Span(10, 10 + len(base), "base"),))


def test_an_unchanged_copy_takes_full_steps() -> None:
    """A base of 1,000 tokens copied as it is takes hardly more steps than full drafts would."""
    base = words(1, 1000)
    assert steps(LookupProposer(), edit_prompt(base), base, 64) <= 1000 / 65 + 2


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("insertion", lambda base: [*base[:300], *words(7, 5, 10_000), *base[300:]]),
        ("deletion", lambda base: [*base[:300], *base[320:]]),
        ("substitution", lambda base: [*base[:300], 9001, 9002, *base[302:]]),
        ("long substitution", lambda base: [*base[:300], *words(7, 40, 10_000), *base[340:]]),
        ("preface", lambda base: [*words(7, 17, 10_000), *base[17:]]),
        ("move", lambda base: [*base[:300], *base[500:600], *base[300:500], *base[600:]]),
    ],
)
def test_the_way_back_after_a_change_is_short(name: str, change: object) -> None:
    """After new tokens, a gap, a replacement or a move, the copy goes on within a few steps."""
    base = words(2, 1000)
    answer = change(base)  # type: ignore[operator]  # parametrized functions
    new = len(set(answer) - set(base))
    assert steps(LookupProposer(), edit_prompt(base), answer, 64) <= 1000 / 65 + 12 + new, name


def test_what_stands_in_references_is_found() -> None:
    """An answer that copies another file is drafted from it, though the prompt does not hold it."""
    other = words(3, 400)
    prompt = Prompt(tuple(words(4, 50)), references=(Reference(tuple(other), "document"),))
    assert steps(LookupProposer(), prompt, other, 64) < 20


def test_a_rename_is_applied_to_the_rest() -> None:
    """Once a name was seen to change, or its change was asked for, its other places are drafted changed."""
    toy = ToyTokens()
    lines = [f"first{k} = call_{k}(old_name, third{k})\n" for k in range(40)]
    before, after = "".join(lines), "".join(lines).replace("old_name", "new_name")
    asks, silent = (toy.encode(text) for text in ("Rename old_name to new_name.\n", "Make it better.\n"))
    base, answer = toy.encode(before), toy.encode(after)

    def count(message: list[int], retokenizer: ToyTokens | None) -> int:
        prompt = Prompt((*message, *base), (Span(len(message), len(message) + len(base), "base"),))
        return steps(LookupProposer(retokenizer=retokenizer), prompt, answer, 32)

    full = len(answer) / 33
    assert count(asks, toy) <= full + 3
    assert count(silent, toy) <= full + 10
    assert count(silent, None) > full + 15


def _wrapped(text: str) -> str:
    lines = text.splitlines(keepends=True)
    return "".join([*lines[:10], "  with lock :\n", *("  " + line for line in lines[10:60]), *lines[60:]])


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("block wrapped", _wrapped),
        ("tabs", lambda text: text.replace("\n  ", "\n\t")),
        ("argument added", lambda text: text.replace("two, three)", "two, three, four)")),
        ("quotes", lambda text: text.replace("'", '"')),
        ("call awaited", lambda text: text.replace("call(", "await call(")),
        ("camel case", lambda text: re.sub(r"_(\w)", lambda match: match[1].upper(), text)),
    ],
)
def test_a_change_that_recurs_is_applied_to_the_rest(name: str, change: object) -> None:
    """A change that was seen a few times is drafted wherever it is due, and so costs a few steps only."""
    toy = ToyTokens()
    before = "".join(f"  key_{chr(97 + k % 26)}{k} = call('key{k}', two, three)\n" for k in range(80))
    after = change(before)  # type: ignore[operator]  # parametrized functions
    assert after != before, name
    base, answer = toy.encode(before), toy.encode(after)
    prompt = Prompt((*toy.encode("Do it.\n"), *base), (Span(4, 4 + len(base), "base"),))

    def count(retokenizer: ToyTokens | None) -> int:
        return steps(LookupProposer(retokenizer=retokenizer), prompt, answer, 32)

    assert count(toy) <= len(answer) / 33 + 20
    assert count(toy) < 0.7 * count(None)


def test_a_rename_that_does_not_happen_costs_little() -> None:
    """If a rename is asked for and the answer keeps the old name, drafting soon follows the old one."""
    toy = ToyTokens()
    before = "".join(f"first{k} = call_{k}(old_name, third{k})\n" for k in range(40))
    message, base = toy.encode("Rename old_name to new_name.\n"), toy.encode(before)
    prompt = Prompt((*message, *base), (Span(len(message), len(message) + len(base), "base"),))
    assert steps(LookupProposer(retokenizer=toy), prompt, base, 32) <= len(base) / 33 + 6


def test_an_answer_that_talks_first_is_followed_as_soon_as_it_opens_the_text() -> None:
    """Until the text is under way, its opening is expected at every start of a line."""
    toy = ToyTokens()
    opening, body = toy.encode("~ x\n"), toy.encode("".join(f"first{k} = call_{k}(third{k})\n" for k in range(40)))
    talk = toy.encode("Here is the new version of it:\n")
    expected = (*opening, *body)
    prompt = Prompt(tuple(toy.encode("Do it.\n")), references=(Reference(expected, "prediction", len(opening)),))
    assert steps(LookupProposer(retokenizer=toy), prompt, [*talk, *expected], 32) <= len(talk) + len(expected) / 33 + 2
    assert steps(LookupProposer(retokenizer=toy), prompt, expected, 32) <= len(expected) / 33 + 1
    assert steps(LookupProposer(retokenizer=toy), prompt, body, 32) <= len(body) / 33 + 2


def test_tenants_see_nothing_of_each_other() -> None:
    """One tenant's text leaks to no other through a shared store: trees are, step for step, those of a server that
    never saw it, while the tenant's own requests find everything there."""
    secret, start = words(5, 60), words(5, 10)
    first = Prompt((*words(6, 20), *secret))
    second = Prompt((*words(6, 20), *start))

    def trees(store: SegmentStore) -> list[DraftTree]:
        proposer = LookupProposer(store, tenant="b")
        proposer.begin(second)
        found = [proposer.propose(32)]
        for token in secret[10:20]:
            proposer.observe([token])
            found.append(proposer.propose(32))
        return found

    shared = SegmentStore()
    for _ in range(5):
        steps(LookupProposer(shared, tenant="a"), first, secret, 32)
    kept = len(shared)
    assert trees(shared) == trees(SegmentStore())
    # The store is on: the first tenant's own repetition finds everything there.
    steps(LookupProposer(shared, tenant="a"), first, secret, 32)
    before = len(shared)
    assert kept < before  # the second tenant's prompt went in under its own name
    LookupProposer(shared, tenant="a").begin(first)
    assert len(shared) == before


def test_a_second_request_on_a_document_indexes_only_what_is_new() -> None:
    """With a store, a document sent again with another instruction adds one small segment."""
    store, base = SegmentStore(), words(8, 500)
    for message in ([1, 2, 3], [4, 5, 6]):
        LookupProposer(store).begin(Prompt((*base, *message), (Span(0, 500, "base"),)))
    assert len(store) == 3


@pytest.mark.parametrize(
    "ids",
    [
        [7] * 64_000,
        [1, 2] * 20_000,
        [5] * 30_000 + [6],
        words(9, 30_000, 64),
        [],
    ],
    ids=["newlines", "two", "spaces then a word", "base64", "nothing"],
)
def test_pathological_texts_finish(ids: list[int]) -> None:
    """Endless repetition and noise are proposed from like anything else."""
    answer = (ids or [1])[:300] + words(10, 30)
    assert steps(LookupProposer(), Prompt((*ids, 3), (Span(0, len(ids), "base"),)), answer, 64) <= len(answer)


def lines(prompt: Prompt, answer: Sequence[int], retokenizer: Retokenizer | None = None) -> int:
    """Executed lines of code while an answer is proposed for, token by token."""
    proposer = LookupProposer(retokenizer=retokenizer)
    proposer.begin(prompt)
    executed = 0

    def trace(*_: object) -> object:
        nonlocal executed
        executed += 1
        return trace

    previous = sys.gettrace()
    sys.settrace(trace)  # type: ignore[arg-type]  # counts lines, returns itself
    try:
        for token in answer:
            proposer.observe([token])
            proposer.propose(64)
    finally:
        sys.settrace(previous)
    return executed


def base_only(ids: list[int]) -> Prompt:
    return Prompt(tuple(ids))


def beside(ids: list[int]) -> Prompt:
    return Prompt((*ids, 1, 2, 3), (Span(len(ids), len(ids) + 2, "base"),))


def in_pieces(ids: list[int]) -> Prompt:
    """Of 60,000 tokens, 600 documents, as files of the client's; of 6,000, 60."""
    files = tuple(Reference(tuple(ids[start : start + 100]), "document") for start in range(0, len(ids), 100))
    return Prompt((1, 2, 3), (), files)


@pytest.mark.parametrize("layout", [base_only, beside, in_pieces])
@pytest.mark.parametrize(
    "text",
    [
        lambda count: words(11, count, 200),
        lambda count: words(11, count, 64),
        lambda count: words(11, count, 10**6),
        lambda count: [7] * count,
        lambda count: [7, 8] * (count // 2),
        lambda count: list(range(count)),
        lambda count: [token for number in range(count // 2) for token in (number, 7)],
    ],
    ids=["words", "base64", "noise", "equal", "period of two", "no token twice", "every other equal"],
)
def test_work_per_step_does_not_grow_with_the_context(
    text: Callable[[int], list[int]], layout: Callable[[list[int]], Prompt]
) -> None:
    """Looking up does not grow with the context: a step in 60,000 tokens of any text does hardly more than in 6,000,
    whether it copies or not."""
    answer = [*words(12, 20, 200), 7, 8, 7, 7, 7, *text(60)[20:40]]
    assert lines(layout(text(60_000)), answer) <= 1.5 * lines(layout(text(6_000)), answer)


class Spelled:
    """Tokens 7 and 8 are a line end and a bracket, all others names."""

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [{7: "\n", 8: "("}.get(token, f" n{token}") for token in ids]

    def encode(self, text: str) -> list[int]:
        found = re.findall(r" n(\d+)|(\n)|(.)", text)
        return [int(name) if name else 7 if line else 8 for name, line, _ in found]


@pytest.mark.parametrize(
    "text",
    [
        lambda count: words(11, count, 200),
        lambda count: words(11, count, 10**6),
        lambda count: [7] * count,
        lambda count: [7, 8] * (count // 2),
        lambda count: [token for number in range(count // 5) for token in (number, 8, 9, 10 + number, 7)],
    ],
    ids=["words", "noise", "newlines", "period of two", "lines"],
)
def test_work_per_step_does_not_grow_with_a_base_whose_text_is_known(text: Callable[[int], list[int]]) -> None:
    """Line ends, shapes of words and changes are looked for around the cursor only: in a base of 60,000 tokens a step
    behind a difference does hardly more than in one of 6,000."""
    answer = [*text(60)[:20], *words(12, 10, 200), 7, 8, 7, 7, 7, *text(60)[20:40]]
    assert lines(base_only(text(60_000)), answer, Spelled()) <= 1.5 * lines(base_only(text(6_000)), answer, Spelled())


def test_counts_may_be_shared() -> None:
    """Counts that one request added to serve the next."""
    hazards, base = Hazards({}), words(13, 300, 10**6)
    first = steps(LookupProposer(hazards=hazards), edit_prompt(base), base, 64)
    assert steps(LookupProposer(hazards=hazards), edit_prompt(base), base, 64) <= min(first, 300 / 65 + 2)


def test_the_token_lane_loads_no_tensors_and_no_tokenizers() -> None:
    """Importing all of the token lane imports none of torch, transformers, tokenizers."""
    code = (
        "import sys, lookup_spec.propose.proposer, lookup_spec.propose.walk\n"
        "print([name for name in ('torch', 'transformers', 'tokenizers', 'tree_sitter') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_new_name_is_accounted_to_the_rename() -> None:
    """Where a rename was asked for, the new name is drafted, and its source says so."""
    toy = ToyTokens()
    head, base = toy.encode("File:\n"), toy.encode("x = 1\nold = 2\ny = old\n")
    wish = toy.encode("Rename old to new.\n")
    prompt = Prompt((*head, *base, *wish), (Span(len(head), len(head) + len(base), "base"),))
    proposer = LookupProposer(retokenizer=toy)
    proposer.begin(prompt)
    tree = proposer.propose(32)
    names = {toy.pieces([token])[0].strip() for token, source in zip(tree.tokens, tree.sources, strict=True)
             if source == "renamed"}  # fmt: skip
    assert "new" in names
    assert "old" not in names

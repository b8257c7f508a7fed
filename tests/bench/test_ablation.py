from __future__ import annotations

import pytest
from lookup_bench.ablation import COUNTS, KINDS, REACHES, AblatedProposer, parsed
from lookup_bench.records import RecordError

from lookup_spec.propose.hazard import Hazards
from lookup_spec.propose.prompt import Prompt, Span
from lookup_spec.propose.proposer import LookupProposer
from lookup_spec.propose.store import SegmentStore
from lookup_spec.propose.tree import DraftTree
from lookup_spec.propose.walk import walk
from tests.fakes.toy_tokens import ToyTokens

GETTER = "def get_name(user):\n    name = user.names[0]\n    return name.strip()\n\n\n"
LINES = "line_{k} = old_name({k})\nsize_{k} = OLD_NAME[{k}]\ntext_{k} = 'text'\n"
BEFORE = GETTER * 2 + "".join(LINES.format(k=k) for k in range(12))
AFTER = (
    BEFORE.replace("old_name", "new_name").replace("OLD_NAME", "NEW_NAME").replace("line_5 =", "try:\n    line_5 =")
    + GETTER.replace("name", "mail").replace("user", "account")
    + "".join(f"more_{k} = new_name({k})\n" for k in range(9))
).replace("'", '"')


def trees(proposer: LookupProposer, toy: ToyTokens) -> list[DraftTree]:
    """All trees on the way through one edit of many kinds."""
    wish, base, answer = (toy.encode(text) for text in ("Rename old_name to new_name.\n", BEFORE, AFTER))
    proposer.begin(Prompt((*wish, *base), (Span(len(wish), len(wish) + len(base), "base"),)))
    found, done = [], 0
    while done < len(answer):
        found.append(proposer.propose(24))
        coming = iter(answer[done:])
        new = walk(found[-1], lambda _: next(coming, -1)).tokens  # noqa: B023
        proposer.observe(answer[done : done + len(new)])
        done += len(new)
    return found


def ablated(*without: str) -> list[DraftTree]:
    toy = ToyTokens()
    return trees(AblatedProposer(frozenset(without), SegmentStore(), toy), toy)


def sources(trees: list[DraftTree]) -> set[str]:
    return {source for tree in trees for source in tree.sources}


def test_with_nothing_left_out_trees_are_the_usual_ones() -> None:
    """Nothing but what is named changes."""
    toy = ToyTokens()
    assert ablated() == trees(LookupProposer(retokenizer=toy), toy)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_kind_that_is_left_out_drafts_nothing(name: str) -> None:
    """No node of any tree comes from it."""
    assert name not in sources(ablated(name))


def test_the_edit_shows_what_is_tested() -> None:
    """With all in, most kinds draft something, so that leaving them out says something."""
    assert len(sources(ablated()).intersection(KINDS)) >= 10


@pytest.mark.parametrize("name", ["name", "other_case"])
def test_places_of_changes_can_be_left_out(name: str) -> None:
    """Names stay where a kind of place is left out, and the others still change; so more passes are needed."""
    assert name in REACHES
    assert "renamed" in sources(ablated(name))
    assert len(ablated(name)) > len(ablated())
    assert "renamed" not in sources(ablated(*REACHES))


def test_without_counts_rough_guesses_are_made() -> None:
    """Trees are those of a proposer that starts from none."""
    toy = ToyTokens()
    assert ablated(COUNTS) == trees(LookupProposer(hazards=Hazards({}), retokenizer=toy), toy)


def test_names_are_checked() -> None:
    """What cannot be left out is refused with the names of what can."""
    assert parsed("near, answer") == {"near", "answer"}
    with pytest.raises(RecordError, match=r"'start' cannot be left out; what can is: insert, .*successor, .*counts"):
        parsed("near,start")

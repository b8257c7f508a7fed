"""Edits from request to events: a scripted answer through the real engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from fakes.scribe import Scribe

from lookup_spec.errors import ContextLengthError, EditError
from lookup_spec.model.load import LoadedModel
from lookup_spec.params import SamplingParams
from lookup_spec.pipeline.edit import EditDone, EditEvent, EditHunk, EditProgress, EditRun, edit
from lookup_spec.pipeline.edit_plan import EditPlan, EditRequest, plan_edit
from lookup_spec.text.edit_task import File, Instruction, NextEdit, Task
from lookup_spec.text.hunks import Hunk, apply_hunks
from lookup_spec.text.lines import SourceText
from tests.server.tiny_service import CONTEXT, tiny_model

CODE = "def add(a, b):\n    return a - b\n\n\ndef print_all(items):\n    for item in items:\n        print(item)\n"
FIXED = CODE.replace("a - b", "a + b")


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    return tiny_model()


def request(text: str, task: str | Task = "Fix it.", **options: Any) -> EditRequest:
    return EditRequest(
        SourceText.from_text(text), Instruction(task) if isinstance(task, str) else task, "sum.py", **options
    )


def events(loaded: LoadedModel, asked: EditRequest, answer: str, **options: Any) -> list[EditEvent]:
    return list(edit(Scribe(loaded, answer, **options), asked))


def closed(told: Sequence[EditEvent]) -> list[Hunk]:
    return [event.hunk for event in told if isinstance(event, EditHunk) and event.state == "closed"]


def done(told: Sequence[EditEvent]) -> EditDone:
    last = told[-1]
    assert isinstance(last, EditDone)
    return last


def test_a_hunk_comes_before_the_answer_is_complete(loaded: LoadedModel) -> None:
    told = events(loaded, request(CODE), FIXED + "```")
    kinds = [type(event).__name__ for event in told]
    hunk = kinds.index("EditHunk")
    assert kinds[hunk + 1 :].count("EditProgress") > 1
    assert closed(told) == [Hunk(1, 2, "    return a + b\n")]
    assert done(told).text == FIXED
    assert (done(told).finish_reason, done(told).hunks, done(told).complete) == ("stop", 1, True)


def test_progress_moves_over_all_lines(loaded: LoadedModel) -> None:
    told = events(loaded, request(CODE), FIXED + "```")
    lines = [event.line for event in told if isinstance(event, EditProgress)]
    assert lines == sorted(lines)
    assert lines[-1] == 7
    assert {event.lines for event in told if isinstance(event, EditProgress)} == {7}


def test_an_unchanged_file_gives_no_hunk(loaded: LoadedModel) -> None:
    told = events(loaded, request(CODE), CODE + "```")
    assert closed(told) == []
    assert (done(told).finish_reason, done(told).text) == ("no_change", CODE)


@pytest.mark.parametrize("tokens", range(5, 42, 4))
def test_an_answer_cut_off_leaves_the_rest_as_it_was(loaded: LoadedModel, tokens: int) -> None:
    asked = request(CODE, params=SamplingParams(max_tokens=tokens))
    told = events(loaded, asked, FIXED + "```")
    assert done(told).finish_reason == "length"
    assert not done(told).complete
    assert done(told).text in (CODE, FIXED)
    assert done(told).text == apply_hunks(asked.source, closed(told))


def test_an_answer_that_is_no_file_raises(loaded: LoadedModel) -> None:
    with pytest.raises(EditError, match="left as it was"):
        events(loaded, request(CODE), "I am sorry, I cannot.")


def test_an_edit_of_some_lines_is_answered_with_those(loaded: LoadedModel) -> None:
    told = events(loaded, request(CODE, lines=(4, 7)), "def print_all(items):\n    pass\n```")
    assert closed(told) == [Hunk(5, 7, "    pass\n")]
    assert done(told).text == CODE.partition("    for")[0] + "    pass\n"


def test_the_unchanged_text_is_predicted(loaded: LoadedModel) -> None:
    """A copy needs few forwards, of some lines as of the whole file."""
    for asked, answer in ((request(CODE), CODE), (request(CODE, lines=(0, 3)), CODE[: CODE.index("\ndef print")])):
        stats = done(events(loaded, asked, answer + "```")).stats
        assert stats.tokens_per_forward > 8


def test_an_empty_file_is_filled(loaded: LoadedModel) -> None:
    told = events(loaded, request(""), CODE + "```")
    assert closed(told) == [Hunk(0, 0, CODE)]


def test_hunks_can_be_watched_as_they_grow(loaded: LoadedModel) -> None:
    """Opened where they begin, with text that is in the new version, and closed with what counts."""
    new = CODE.replace("    return a - b\n", "    c = a + b\n    d = c * 1\n    return d\n").replace("\n", "\r\n")
    asked = request(CODE.replace("\n", "\r\n"))
    engine = Scribe(loaded, new.replace("\r\n", "\n") + "```")
    plan = plan_edit(engine, asked)
    run = EditRun(asked, plan, previews=True)
    session = engine.submit(plan.prompt, plan.params, continuing=True)
    hunks = [event for piece in engine.follow(session) for event in run.take(piece) if isinstance(event, EditHunk)]
    states = [event.state for event in hunks]
    assert states[0] == "open"
    assert states[-1] == "closed"
    assert set(states[1:-1]) == {"delta"}
    assert {event.number for event in hunks} == {0}
    assert hunks[0].hunk == Hunk(1, 1, "")
    assert "".join(event.hunk.text for event in hunks[:-1]) in new
    assert hunks[-1].hunk == Hunk(1, 2, "    c = a + b\r\n    d = c * 1\r\n    return d\r\n")


def plan(loaded: LoadedModel, asked: EditRequest) -> EditPlan:
    return plan_edit(Scribe(loaded, ""), asked)


LONG = "".join(
    f"def add_{n}(a, b):\n    for item in items:\n        print(item)\n    return a + {n}\n\n\n" for n in range(99)
)


def test_a_file_that_does_not_fit_is_narrowed_to_the_definition_at_the_cursor(loaded: LoadedModel) -> None:
    """Its surroundings are shown as far as there is room."""
    found = plan(loaded, request(LONG, cursor=6 * 50 + 2))
    assert found.narrowed
    assert found.lines == (6 * 50, 6 * 50 + 4)
    assert found.question.base.startswith("def add_50(")
    assert found.shown[0] < 6 * 49
    assert found.shown[1] > 6 * 52
    assert len(found.prompt.ids) < CONTEXT


def test_given_lines_of_a_long_file_stay_those(loaded: LoadedModel) -> None:
    found = plan(loaded, request(LONG, lines=(9, 12)))
    assert (found.narrowed, found.lines) == (True, (9, 12))
    assert found.shown[0] <= 9
    assert found.shown[1] >= 12
    assert not plan(loaded, request(LONG[:800], lines=(9, 12))).narrowed


def test_a_text_of_no_known_language_is_narrowed_by_lines(loaded: LoadedModel) -> None:
    asked = EditRequest(SourceText.from_text(LONG), Instruction("x"), "notes.txt", cursor=600)
    found = plan(loaded, asked)
    assert found.lines[0] < 594 <= found.lines[1] <= 594


@pytest.mark.parametrize("options", [{}, {"lines": (0, 500)}])
def test_what_cannot_fit_is_refused_with_the_numbers(loaded: LoadedModel, options: Any) -> None:
    with pytest.raises(ContextLengthError, match=f"this model holds {CONTEXT}") as caught:
        plan(loaded, request(LONG, **options))
    assert caught.value.context_length == CONTEXT


def test_other_files_are_shown_if_they_fit(loaded: LoadedModel) -> None:
    small, large = File(("x = 1\n",), "x.py"), File(tuple(LONG.splitlines(keepends=True)), "y.py")
    assert plan(loaded, request(CODE, others=(small, small))).others == 2
    assert plan(loaded, request(CODE, others=(small, large))).others == 0


def test_the_next_edit_is_sought_around_the_cursor(loaded: LoadedModel) -> None:
    text = LONG[:900]
    found = plan(loaded, request(text, NextEdit((), (20, 0)), cursor=20))
    assert found.lines == (12, 33)
    assert plan(loaded, request(CODE, NextEdit((), (2, 0)), cursor=2)).lines == (0, 7)


@pytest.mark.parametrize("cursor", [0, 7, 6])
def test_the_cursor_may_stand_anywhere_up_to_the_end(loaded: LoadedModel, cursor: int) -> None:
    assert plan(loaded, request(CODE, NextEdit((), (cursor, 0)), cursor=cursor)).lines == (0, 7)
    assert plan(loaded, request(LONG, cursor=594)).lines[1] <= 594

"""Counting guesses while a model answers."""

from __future__ import annotations

import pytest
from lookup_bench import calibrate
from lookup_bench.questions import gaps, questions

from lookup_spec.propose.ending import Ending
from lookup_spec.propose.guess import Guess, Kind
from lookup_spec.propose.hazard import Hazards
from tests.server.tiny_service import tiny_model


def test_guesses_that_came_true_in_answers_are_likelier_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers that did not begin as their prompts do make that unlikely; what came of other guesses is there, too."""
    monkeypatch.setattr(calibrate, "questions", lambda: ["abc", "a b a b", "print(x)"])
    heard: list[tuple[int, int]] = []
    tables = calibrate.answered(tiny_model(), "free", lambda done, most: heard.append((done, most)))
    assert heard == [(0, 3), (1, 3), (2, 3)]
    begun, counted = Hazards({}), Hazards(tables)
    came, tried = (hazards.first(Guess(Kind.START, (0,), 0, 0, 0), Ending.WORD) for hazards in (begun, counted))
    assert tried[0] / tried[1] < came[0] / came[1]
    told = [key for key in tables["first"] if len(key) == 4 and key[1] in (Kind.ANSWER, Kind.CONTINUE, Kind.AHEAD)]
    assert told
    assert all(0 <= came <= tried > 0 for came, tried in tables["first"].values())


def test_texts_to_ask_about_are_there_in_every_python() -> None:
    """Nobody needs anything else to make the counts again."""
    assert len(set(questions())) == len(questions()) > 50
    assert all(before.strip() and after.strip() for before, after in gaps())

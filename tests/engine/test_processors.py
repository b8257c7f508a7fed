"""Processors that look back see each row's own path, inside a draft too."""

from __future__ import annotations

import pytest
from fakes.proposers import ScriptProposer
from fakes.running import Job, answer_all
from fakes.scripted import ScriptedModel
from fakes.words import EOS, Words

from lookup_spec.params import SamplingParams

BLOCKS = pytest.mark.parametrize("block", [0, 1, 2, 3, 5, 100])


def said(words, scores, params, draft, block):
    """The words of an answer whose target has the same scores at every step, and how it ended."""
    ids = {words.ids(word)[0]: score for word, score in scores.items()}
    model = ScriptedModel(lambda _: ids, len(words))
    forced = words.ids(*draft)
    job = Job(words.ids("prompt"), SamplingParams(**params), lambda: ScriptProposer(forced), words.output)
    (answer,) = answer_all(model, [job], width=block, ends=words.ids(EOS), context=100)
    assert answer.error is None
    return answer.text.split(), answer.finish_reason


@BLOCKS
@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"frequency_penalty": 1.0}, "la ok la ok la ok"),
        ({"frequency_penalty": -1.0}, "la la la la la la"),
        ({"presence_penalty": 1.0}, "la ok la la la la"),
        ({"repetition_penalty": 1.5}, "la ok la la la la"),
        ({}, "la la la la la la"),
    ],
)
def test_penalties_count_the_drafted_tokens_before_a_row(params, expected, block):
    """A penalty sees the accepted draft before each row, neither less nor more."""
    words = Words(["la ", "ok ", "prompt"])
    got, _ = said(words, {"la ": 2.0, "ok ": 1.5}, {"max_tokens": 6, **params}, ["la "] * 4 + ["ok ", "la "], block)
    assert " ".join(got) == expected


@BLOCKS
@pytest.mark.parametrize("least", [0, 1, 3, 4])
def test_the_least_length_is_met_and_not_passed(least, block):
    """End tokens are impossible before ``min_tokens`` tokens and possible right after them."""
    words = Words(["go ", "on ", "prompt"])
    got, reason = said(
        words,
        {EOS: 5.0, "go ": 3.0, "on ": 1.0},
        {"min_tokens": least, "max_tokens": 10},
        ["go ", "go ", EOS, "go "],
        block,
    )
    assert (got, reason) == (["go"] * least, "stop")


@BLOCKS
def test_bad_words_look_back_over_the_prompt_and_the_draft(block):
    """A forbidden sequence is not completed, whether it began in the prompt or in a draft."""
    words = Words(["a ", "b ", "c ", "prompt"])
    bad = (words.ids("prompt", "a "), words.ids("b ", "a "), words.ids("a ", "a "))
    got, _ = said(
        words,
        {"a ": 3.0, "b ": 2.0, "c ": 1.0},
        {"bad_words": bad, "max_tokens": 5},
        ["a "] * 5,
        block,
    )
    assert got == ["b"] * 5
    got, _ = said(
        words,
        {"a ": 3.0, "b ": 2.0, "c ": 1.0},
        {"bad_words": (words.ids("a ", "a "), words.ids("a ", "b ", "a ")), "max_tokens": 6},
        ["a ", "b ", "a ", "b ", "b ", "a "],
        block,
    )
    assert got == ["a", "b", "b", "a", "b", "b"]


@BLOCKS
def test_a_bias_moves_every_row(block):
    """``logit_bias`` holds at each position of a draft."""
    words = Words(["la ", "ok ", "prompt"])
    bias = {words.ids("ok ")[0]: 1.0}
    got, _ = said(words, {"la ": 2.0, "ok ": 1.5}, {"logit_bias": bias, "max_tokens": 4}, ["la ", "ok "] * 2, block)
    assert got == ["ok"] * 4

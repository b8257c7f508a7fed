"""Settings are checked once, and a refusal names the setting."""

from __future__ import annotations

import math

import pytest

from lookup_spec.errors import InvalidRequestError
from lookup_spec.grammar import Grammar
from lookup_spec.params import MAX_LOGPROBS, MAX_STOPS, SamplingParams

NO_NUMBERS = [math.nan, math.inf, -math.inf]
BAD = [
    ("max_tokens", [-1]),
    ("temperature", [-0.1, 100.1, *NO_NUMBERS]),
    ("top_p", [0.0, -0.1, 1.01, *NO_NUMBERS]),
    ("top_k", [-1]),
    ("min_p", [-0.1, 1.1, *NO_NUMBERS]),
    ("repetition_penalty", [0.0, -1.0, 1001.0, *NO_NUMBERS]),
    ("presence_penalty", [-100.5, 100.5, *NO_NUMBERS]),
    ("frequency_penalty", [-100.5, 100.5, *NO_NUMBERS]),
    ("logit_bias", [{-1: 1.0}, *({3: value} for value in NO_NUMBERS)]),
    ("bad_words", [((),), ((1,), ())]),
    ("min_tokens", [-1]),
    ("stop", [("",), ("a", ""), ("x",) * (MAX_STOPS + 1)]),
    ("seed", [-1, 2**64]),
    ("logprobs", [-1, MAX_LOGPROBS + 1]),
]
GOOD = [
    ("max_tokens", [None, 0, 1]),
    ("temperature", [0.0, 5e-324, 100.0]),
    ("top_p", [1e-9, 1.0]),
    ("top_k", [0, 10**9]),
    ("min_p", [0.0, 1.0]),
    ("repetition_penalty", [1e-3, 1e3]),
    ("presence_penalty", [-100.0, 100.0]),
    ("frequency_penalty", [-100.0, 100.0]),
    ("logit_bias", [{}, {0: -100.0}]),
    ("bad_words", [(), ((1, 2), (3,))]),
    ("min_tokens", [0, 7]),
    ("stop", [(), ("a",) * MAX_STOPS]),
    ("seed", [None, 0, 2**64 - 1]),
    ("logprobs", [None, 0, MAX_LOGPROBS]),
]


def pairs(table):
    return [pytest.param(name, value, id=f"{name}={value!r:.30}") for name, values in table for value in values]


@pytest.mark.parametrize(("name", "value"), pairs(BAD))
def test_a_bad_value_is_refused_by_name(name, value):
    """The error names the setting, for the client and in its sentence."""
    with pytest.raises(InvalidRequestError, match=name) as caught:
        SamplingParams(**{name: value})
    assert caught.value.param == name


@pytest.mark.parametrize(("name", "value"), pairs(GOOD))
def test_the_bounds_themselves_are_allowed(name, value):
    """A value at the edge of its range is taken as it is."""
    assert getattr(SamplingParams(**{name: value}), name) == value


def test_a_least_length_beyond_the_longest_is_refused():
    """``min_tokens`` above ``max_tokens`` can never be met."""
    with pytest.raises(InvalidRequestError) as caught:
        SamplingParams(min_tokens=3, max_tokens=2)
    assert caught.value.param == "min_tokens"
    assert SamplingParams(min_tokens=2, max_tokens=2).min_tokens == 2


def test_only_temperature_zero_is_greedy():
    """Any other temperature samples."""
    assert SamplingParams().greedy
    assert not SamplingParams(temperature=5e-324).greedy


def test_ignoring_the_end_does_not_go_with_a_grammar():
    """Who never ends cannot end where a grammar says."""
    with pytest.raises(InvalidRequestError) as caught:
        SamplingParams(grammar=Grammar.regex("a"), ignore_eos=True)
    assert caught.value.param == "ignore_eos"

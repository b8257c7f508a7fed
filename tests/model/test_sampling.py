"""Sampling draws from the distribution it should, and the noise of a position is its own."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import torch
from fakes.proposers import ScriptProposer
from fakes.running import Job, answer_all
from fakes.scripted import ScriptedModel
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lookup_spec.model.sampling import DistributionError, Sampler, _exponentials, _filtered
from lookup_spec.params import SamplingParams
from lookup_spec.propose.tree import DraftTree

# A right sampler fails a test of frequencies for one choice of seeds in a million; these seeds are fixed.
FALSE_ALARM = 1e-6
DRAWS = 2000
DRAFTED_DRAWS = 400
SIZE = 12

SETTINGS = {
    "plain": {},
    "hot": {"temperature": 1.8},
    "cold": {"temperature": 0.4},
    "top-p": {"top_p": 0.7},
    "top-k": {"top_k": 4},
    "min-p": {"min_p": 0.2},
    "top-k, top-p": {"top_k": 6, "top_p": 0.8},
    "all": {"temperature": 1.3, "top_k": 8, "top_p": 0.9, "min_p": 0.1},
}


def filtered_by_hand(logits, *, top_k=0, top_p=1.0, min_p=0.0):
    """Processed probabilities of all tokens, one plain step after the other."""
    order = sorted(range(len(logits)), key=lambda i: -logits[i])
    kept = order[: top_k or None]

    def shares(tokens):
        weights = [math.exp(logits[i] - logits[order[0]]) for i in tokens]
        return [weight / sum(weights) for weight in weights]

    reached, nucleus = 0.0, []
    for token, share in zip(kept, shares(kept), strict=True):
        if nucleus and reached >= top_p:
            break
        nucleus.append(token)
        reached += share
    best = shares(nucleus)[0]
    final = [token for token, share in zip(nucleus, shares(nucleus), strict=True) if share >= min_p * best]
    p = np.zeros(len(logits))
    p[final] = shares(final)
    return p


def target() -> list[float]:
    return np.random.default_rng(3).normal(size=SIZE).round(3).tolist()


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(-4000, 4000), min_size=1, max_size=700, unique=True),
    st.integers(0, 720),
    st.sampled_from([1.0, 0.999, 0.9, 0.53, 0.11, 1e-9]),
    st.sampled_from([0.0, 1e-6, 0.031, 0.47, 1.0]),
)
def test_filters_keep_what_their_definitions_say(thousandths, top_k, top_p, min_p):
    """Top-k, then top-p over what is left, then min-p; the rest keeps its proportions."""
    logits = [value / 1000 for value in thousandths]
    ids, log_p = _filtered(torch.tensor(logits), SamplingParams(top_k=top_k, top_p=top_p, min_p=min_p))
    expected = filtered_by_hand(np.float32(logits).tolist(), top_k=top_k, top_p=top_p, min_p=min_p)
    got = np.zeros(len(logits))
    got[ids] = np.exp(log_p) / np.exp(log_p).sum()
    np.testing.assert_allclose(got, expected, atol=1e-6)


def surprise(counts, p):
    """The chi-square test's p-value; tokens that may not be drawn must not be."""
    possible = np.flatnonzero(p)
    assert set(counts) <= set(possible.tolist())
    observed = [counts[token] for token in possible]
    return stats.chisquare(observed, p[possible] * sum(observed)).pvalue if len(possible) > 1 else 1.0


def expected_shares(params) -> np.ndarray:
    cooled = np.array(target()) / params.get("temperature", 1.0)
    filters = {key: value for key, value in params.items() if key != "temperature"}
    return filtered_by_hand(cooled.tolist(), **filters)


@pytest.mark.parametrize("name", SETTINGS)
def test_tokens_come_as_often_as_they_should(name):
    """Over many seeds, frequencies match the processed distribution at the first place and at the second."""
    places: list[Counter[int]] = [Counter(), Counter()]
    logits = torch.tensor([target()] * 2)
    for seed in range(DRAWS):
        params = SamplingParams(**{"temperature": 1.0, "seed": seed, **SETTINGS[name]})
        choose = Sampler(params, [1], [], SIZE).over(logits)
        for row, counts in enumerate(places):
            counts[choose(row)[0]] += 1
    for counts in places:
        assert surprise(counts, expected_shares(SETTINGS[name])) > FALSE_ALARM


@pytest.mark.parametrize("name", ["plain", "all"])
def test_drafted_tokens_come_as_often_as_they_should(name):
    """So do tokens reached through drafts, and seed by seed they are those of plain decoding."""
    scores = dict(enumerate(target()))
    model = ScriptedModel(lambda _: scores, SIZE)
    answers = {}
    # Every token is drafted, so whatever is chosen first, the second place is reached through a draft.
    for proposer, width in ((EveryToken, SIZE), (lambda: ScriptProposer(()), 0)):
        jobs = [
            Job(
                [1],
                SamplingParams(**{"max_tokens": 2, "temperature": 1.0, "seed": seed, **SETTINGS[name]}),
                proposer,
            )
            for seed in range(DRAFTED_DRAWS)
        ]
        answers[width] = answer_all(model, jobs, width=width, ends=(), context=100, at_once=DRAFTED_DRAWS)
    assert all(answer.pieces[-1].stats.forward_passes == 1 for answer in answers[SIZE])
    assert [answer.token_ids for answer in answers[SIZE]] == [answer.token_ids for answer in answers[0]]
    for place in range(2):
        counts = Counter(answer.token_ids[place] for answer in answers[SIZE])
        assert surprise(counts, expected_shares(SETTINGS[name])) > FALSE_ALARM


class EveryToken(ScriptProposer):
    """Drafts every token of the vocabulary as the next one."""

    def __init__(self) -> None:
        super().__init__(())

    def propose(self, limit):
        tokens = range(SIZE if limit else 0)
        n = len(tokens)
        return DraftTree((self.last, *tokens), (-1, *[0] * n), (1.0,) * (n + 1), ("", *["all"] * n))


def test_places_have_noise_of_their_own():
    """The pair of two neighbouring places is distributed as if drawn independently, and places differ."""
    params = SamplingParams(temperature=1.0, seed=11)
    logits = torch.zeros(6000, 4)
    choose = Sampler(params, [0], [], 4).over(logits)
    tokens = [choose(row)[0] for row in range(len(logits))]
    table = np.zeros((4, 4))
    for pair in zip(tokens[::2], tokens[1::2], strict=True):
        table[pair] += 1
    assert stats.chi2_contingency(table).pvalue > FALSE_ALARM
    assert stats.chisquare(table.ravel()).pvalue > FALSE_ALARM


def test_noise_depends_on_seed_and_place_alone():
    """The same seed and place give the same variates; another seed or place gives unrelated ones."""
    base = _exponentials(5, 7, 4000)
    assert np.array_equal(base, _exponentials(5, 7, 4000))
    assert np.array_equal(base[:100], _exponentials(5, 7, 100))
    for seed, place in ((6, 7), (5, 8), (7, 5), (2**64 - 1, 7)):
        other = _exponentials(seed, place, 4000)
        assert stats.pearsonr(base, other).pvalue > FALSE_ALARM
        assert not np.intersect1d(base, other).size  # not even the same variates for other tokens
    assert stats.kstest(base, "expon").pvalue > FALSE_ALARM


def test_without_a_seed_answers_differ():
    """An unset seed is drawn anew for each request."""
    logits = torch.zeros(40, 50)

    def draw():
        choose = Sampler(SamplingParams(temperature=1.0), [0], [], 50).over(logits)
        return [choose(row)[0] for row in range(40)]

    assert draw() != draw()


@pytest.mark.parametrize("temperature", [1e-2, 1e-6, 1e-30, 1e-45, 1e-300, 5e-324])
def test_a_tiny_temperature_is_greedy(temperature):
    """However small the temperature, the likeliest token is drawn and nothing overflows."""
    logits = torch.tensor([[-40.0, 3.0, 60.0, 59.0], [-3.0, -8.0, -30.0, -4.0]])
    choose = Sampler(SamplingParams(temperature=temperature, seed=1), [0], [], 4).over(logits)
    assert [choose(0)[0], choose(1)[0]] == [2, 0]


@pytest.mark.parametrize("params", [{}, {"logprobs": 1}, {"presence_penalty": 0.0, "logit_bias": {0: 0.0}}])
def test_greedy_ties_fall_to_the_first_token_on_every_path(params):
    """With and without processing, one of equal scores is taken by its place, as ``argmax`` does."""
    logits = torch.tensor([[1.0, 5.0, 5.0, 5.0], [2.0, 2.0, 2.0, 2.0], [0.0, 1.0, 0.0, 1.0]])
    choose = Sampler(SamplingParams(**params), [0], [], 4).over(logits)
    assert [choose(row)[0] for row in range(3)] == [1, 0, 1]


@pytest.mark.parametrize("params", [{}, {"temperature": 1.0}, {"logprobs": 0}, {"min_tokens": 1}])
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_rows_that_are_no_distribution_are_an_error(params, bad):
    """NaN and infinity are reported, wherever in the row they stand."""
    logits = torch.zeros(1, 5)
    logits[0, 3] = bad
    with pytest.raises(DistributionError):
        Sampler(SamplingParams(**params), [0], [1], 5).over(logits)(0)


def test_forbidding_every_token_is_an_error():
    """Where bad words leave nothing to choose, no token is invented."""
    params = SamplingParams(bad_words=((0,), (1,), (2,)))
    with pytest.raises(DistributionError, match="bad_words"):
        Sampler(params, [0], [], 3).over(torch.zeros(1, 3))(0)


@pytest.mark.parametrize("params", [{}, {"temperature": 1.0, "seed": 0}, {"min_tokens": 2, "logit_bias": {1: 9.0}}])
def test_the_models_numbers_are_not_written_to(params):
    """Processing works on a copy: a row may be looked at again."""
    logits = torch.randn(3, 6, generator=torch.Generator().manual_seed(0))
    before = logits.clone()
    choose = Sampler(SamplingParams(logprobs=2, repetition_penalty=2.0, **params), [0], [5], 6).over(logits)
    for row in range(3):
        choose(row)
    assert torch.equal(logits, before)


def test_log_probabilities_are_from_before_any_processing():
    """They are the model's own, natural logarithms, the best first."""
    raw = torch.tensor([[1.0, 3.0, 2.0, -1.0]])
    params = SamplingParams(logprobs=2, logit_bias={3: 50.0}, temperature=0.5, top_k=1, seed=1)
    token, entry = Sampler(params, [0], [], 4).over(raw)(0)
    expected = torch.log_softmax(raw[0], -1)
    assert token == entry.token == 3
    assert entry.logprob == pytest.approx(float(expected[3]))
    assert [i for i, _ in entry.top] == [1, 2]
    assert [value for _, value in entry.top] == pytest.approx([float(expected[1]), float(expected[2])])

"""Answers under a grammar do not depend on drafts, and keep to the grammar."""

from __future__ import annotations

from random import Random

import pytest
from fakes.grammars import LANGUAGES, PIECES, RereadingMatcher
from fakes.proposers import ScriptProposer, any_proposer
from fakes.running import Job, answer_all
from fakes.scripted import ScriptedModel
from fakes.words import EOS, Words
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup_spec.grammar import Grammar
from lookup_spec.params import SamplingParams

WORDS = Words(PIECES)
GRAMMARS = WORDS.grammars()
PROMPT = WORDS.ids("x", "{", "a")


def random_scores(seed):
    """A target whose scores depend on the last tokens, and that seldom ends."""

    def scores(path):
        random = Random(f"{seed} {path[-3:]} {len(path)}")
        return {token: random.gauss(0, 3) for token in range(len(WORDS))}

    return scores


def answers(scores, grammar, params, proposers, *, width, make=None):
    make = make or (lambda: GRAMMARS.matcher(grammar, params.stop_token_ids))
    jobs = [
        Job(PROMPT, params, proposer, lambda: WORDS.output(params.stop), make, lambda: GRAMMARS.habits(grammar))
        for proposer in proposers
    ]
    return answer_all(ScriptedModel(scores, len(WORDS)), jobs, width=width, ends=WORDS.ids(EOS), context=100)


SAMPLING = st.sampled_from(
    [
        {},
        {"logprobs": 2},
        {"frequency_penalty": 1.0, "repetition_penalty": 1.3},
        {"temperature": 1.0, "seed": 5},
        {"temperature": 0.8, "seed": 6, "top_p": 0.7, "top_k": 20},
        {"temperature": 3.0, "seed": 7, "min_p": 0.01, "presence_penalty": 1.0, "logit_bias": {3: 2.0}},
        {"stop": ('"b',)},
        {"stop_token_ids": frozenset(WORDS.ids("}", "ab"))},
    ]
)


@settings(max_examples=40)
@given(LANGUAGES, st.integers(0, 2**32), SAMPLING, st.integers(1, 40))
def test_drafted_answers_are_those_of_masking_every_token(language, seed, sampling, most):
    """With drafts from always right to always wrong, in trees of any width, the answer is that of plain decoding with a
    matcher that reads the whole text anew for every token; greedy and sampled, with penalties, filters and stops."""
    random = Random(seed)
    grammar = Grammar.json_schema(language.schema)
    params = SamplingParams(max_tokens=most, **sampling)
    scores = random_scores(seed)

    def reread():
        return RereadingMatcher(lambda: GRAMMARS.matcher(grammar, params.stop_token_ids))

    (truth,) = answers(scores, grammar, params, [lambda: ScriptProposer(())], width=0, make=reread)
    assert truth.error is None
    proposers = [lambda: any_proposer(truth.token_ids, random, len(WORDS)) for _ in range(3)]
    for got in answers(scores, grammar, params, proposers, width=random.choice((1, 3, 16))):
        assert got.error is None
        assert (got.token_ids, got.text, got.finish_reason) == (truth.token_ids, truth.text, truth.finish_reason)
        assert got.logprobs == truth.logprobs
    matcher = GRAMMARS.matcher(grammar)
    assert matcher.push(truth.token_ids) == len(truth.token_ids)
    if truth.finish_reason == "stop" and not {"stop", "stop_token_ids"} & set(sampling):
        assert matcher.may_end


@pytest.mark.parametrize("width", [0, 4, 16])
def test_an_answer_ends_where_nothing_may_follow(width):
    """The pass that would choose the end token is saved, and it is the grammar's end even at the last allowed token;
    a token less, and the answer is cut."""
    grammar = Grammar.json_schema({"const": {"a": 10}})

    def answer(most):
        params = SamplingParams(max_tokens=most)
        [got] = answers(random_scores(0), grammar, params, [lambda: ScriptProposer(())], width=width)
        return got

    whole = answer(None)
    assert whole.finish_reason == "stop"
    exactly = len(whole.token_ids)
    for most, reason in ((exactly, "stop"), (exactly - 1, "length")):
        got = answer(most)
        assert (got.finish_reason, got.token_ids) == (reason, whole.token_ids[:most])
    assert whole.pieces[-1].stats.forward_passes <= exactly


def test_forced_text_is_drafted_and_right():
    """Where a grammar leaves one text only, it comes in one pass, whatever else was guessed."""
    grammar = Grammar.regex("(true|false): null, null, null")
    wrong = WORDS.ids("x") * 50
    (plain,) = answers(random_scores(1), grammar, SamplingParams(), [lambda: ScriptProposer(wrong)], width=0)
    (drafted,) = answers(random_scores(1), grammar, SamplingParams(), [lambda: ScriptProposer(wrong)], width=32)
    assert drafted.token_ids == plain.token_ids
    stats = drafted.pieces[-1].stats
    assert stats.forward_passes < plain.pieces[-1].stats.forward_passes / 2
    assert stats.sources["grammar"].accepted == stats.sources["grammar"].drafted == stats.accepted


@pytest.mark.parametrize(
    ("text", "usual"),
    [
        ('{"a": true, "ab": 1, "b": "x"}', True),
        ('{"a":true,"ab":1,"b":"x"}', True),
        ('{ "a" :true, "ab" : 1,"b": "x" }', False),
    ],
)
def test_the_style_of_an_answer_is_a_guess(text, usual):
    """As long as JSON is written in a usual way, separators and the names behind them come together; what is written
    otherwise is no less right."""
    types = {"a": "boolean", "ab": "integer", "b": "string"}
    properties = {name: {"type": kind} for name, kind in types.items()}
    grammar = Grammar.json_schema({"type": "object", "properties": properties, "required": list(types)})

    def recite(path):
        rest = text[len(WORDS.text(path[len(PROMPT) :])) :]
        pieces = {token: WORDS.text([token]) for token in range(1, len(WORDS))}
        return {token: float(len(piece)) for token, piece in pieces.items() if rest.startswith(piece)}

    (plain,) = answers(recite, grammar, SamplingParams(), [lambda: ScriptProposer(())], width=0)
    (drafted,) = answers(recite, grammar, SamplingParams(), [lambda: ScriptProposer(())], width=32)
    assert (plain.text, drafted.token_ids) == (text, plain.token_ids)
    if usual:
        assert drafted.pieces[-1].stats.forward_passes <= len(plain.token_ids) / 2


def test_what_is_forbidden_is_not_drafted():
    """Guesses that no answer could hold cost nothing."""
    grammar = Grammar.regex("[ab]+")
    (answer,) = answers(
        random_scores(2), grammar, SamplingParams(max_tokens=20), [lambda: ScriptProposer(WORDS.ids("x") * 50)], width=8
    )
    assert answer.pieces[-1].stats.drafted == 0


def test_a_grammar_that_leaves_no_token_is_an_error_of_its_request():
    """Where the other settings forbid all that the grammar allows, the error says so."""
    grammar = Grammar.regex("a+1")
    params = SamplingParams(max_tokens=9, bad_words=(WORDS.ids("a"), WORDS.ids("ab")))
    (answer,) = answers(random_scores(3), grammar, params, [lambda: ScriptProposer(())], width=4)
    assert "grammar" in str(answer.error)

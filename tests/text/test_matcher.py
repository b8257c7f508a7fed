"""What may come next under a grammar: compared with reading the whole text each time."""

from __future__ import annotations

from random import Random

import pytest
from fakes.grammars import LANGUAGES, PIECES, SlowMatcher
from fakes.words import EOS, Words
from hypothesis import given
from hypothesis import strategies as st

from lookup_spec.errors import InvalidRequestError
from lookup_spec.grammar import Grammar

WORDS = Words(PIECES)
GRAMMARS = WORDS.grammars()


def _allowed(matcher):
    bits = matcher.mask()
    return [token for token in range(1, len(WORDS)) if token // 8 < len(bits) and bits[token // 8] >> token % 8 & 1]


@given(LANGUAGES, st.integers(0, 2**32))
def test_a_schema_allows_at_each_place_what_the_slow_twin_allows(language, seed):
    """Along random ways through random schemas, masks, single answers and ends agree with the twin's, and forks come
    back to where they were. What is forced is the only text there is, and of its spellings the usual one is allowed."""
    random = Random(seed)
    slow, fast = SlowMatcher(WORDS, language.pattern), GRAMMARS.matcher(Grammar.json_schema(language.schema))
    for _ in range(12):
        allowed, forced = _allowed(slow), list(fast.forced())
        assert not forced or (slow.only(WORDS.text(forced)) and fast.fork().push(forced) == len(forced))
        allowed = forced[:1] or allowed
        assert _allowed(fast) == allowed
        assert [token for token in range(1, len(WORDS)) if fast.allows(token)] == allowed
        assert (fast.may_end, fast.complete) == (slow.may_end, slow.complete)
        if not allowed:
            break
        token = random.choice(allowed)
        fork = fast.fork()
        assert fork.push([token]) == 1
        wrong = next((other for other in range(1, len(WORDS)) if not fork.allows(other)), None)
        if wrong is not None:
            assert fork.push([wrong]) == 0
        fork.back(1)
        assert _allowed(fork) == _allowed(fast) == allowed
        assert fast.push([token]) == slow.push([token]) == 1


def test_an_answer_may_end_where_its_grammar_may():
    """End tokens, a request's own among them, are allowed there, and where their text fits, if they have one."""
    comma, one, end = WORDS.ids(",", "1", EOS)
    matcher = GRAMMARS.matcher(Grammar.regex("1+"), [comma, 10_000])
    assert not any(map(matcher.allows, (comma, end, 10_000)))
    matcher.push([one])
    assert all(map(matcher.allows, (comma, end, 10_000, one)))
    stopping = GRAMMARS.matcher(Grammar.regex("1,"), [comma])
    assert not stopping.allows(comma)
    stopping.push([one])
    assert stopping.allows(comma)


@pytest.mark.parametrize(
    ("grammar", "text"),
    [
        (Grammar.regex("(ab)+"), "abab"),
        (Grammar.lark('start: "a" b*\nb: "b"'), "abb"),
        (Grammar.gbnf('root ::= "a" b*\nb ::= "b" | "1"'), "ab1b"),
        (Grammar.json_object(), '{"a": 1}'),
        (Grammar.json_schema({"const": "ab"}), '"ab"'),
    ],
)
def test_every_kind_of_grammar_is_followed(grammar, text):
    """Each language that a grammar may be written in accepts a text of its own, and ends nowhere in it."""
    matcher = GRAMMARS.matcher(grammar)
    assert not matcher.may_end
    ids = WORDS.ids(*text)
    assert matcher.push(ids) == len(ids)
    assert matcher.may_end
    assert matcher.push(WORDS.ids("x")) == 0


@pytest.mark.parametrize(
    ("grammar", "said"),
    [
        (Grammar.json_schema({"type": "thing"}, param="response_format"), "type: thing"),
        (Grammar.json_schema({"not": {"type": "null"}}, param="response_format"), '"not"'),
        (Grammar.json_schema({"type": "array", "uniqueItems": True}, param="response_format"), "uniqueItems"),
        (Grammar.json_schema({"$ref": "#/$defs/x"}, param="response_format"), "/$defs/x"),
        (Grammar.json_schema({"type": "integer", "minimum": 2, "maximum": 1}, param="response_format"), "minimum"),
        (Grammar("json_schema", "{", param="response_format"), "JSON"),
        (Grammar.regex("(", param="response_format"), "regular expression"),
        (Grammar.lark("start: a", param="response_format"), "a"),
        (Grammar.lark("", param="response_format"), "Empty"),
        (Grammar.gbnf("root ::= (", param="response_format"), "grammar"),
        (Grammar.gbnf("root ::= y", param="response_format"), "'y' not found"),
    ],
)
def test_a_wrong_grammar_is_refused_by_name(grammar, said):
    """The refusal names the field and what is wrong with it, keywords that cannot be enforced included."""
    with pytest.raises(InvalidRequestError, match="cannot be followed") as refused:
        GRAMMARS.matcher(grammar)
    assert refused.value.param == "response_format"
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_lenient_schema_leaves_aside_what_it_cannot_enforce():
    """Unknown keywords are no obstacle to enforcing the others; an impossible schema stays refused."""
    schema = {"type": "array", "items": {"enum": ["a"]}, "uniqueItems": True}
    matcher = GRAMMARS.matcher(Grammar.json_schema(schema, lenient=True))
    assert matcher.push(WORDS.ids("[", '"a"', "]")) == 3
    with pytest.raises(InvalidRequestError):
        GRAMMARS.matcher(Grammar.json_schema({"type": "thing"}, lenient=True))

"""Calls of tools: what a model may write, and what is read of it."""

from __future__ import annotations

import json
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from lookup_spec.errors import InvalidRequestError
from lookup_spec.text.detokenize import Vocabulary
from lookup_spec.text.matcher import Grammars
from lookup_spec.text.template import ChatTemplate
from lookup_spec.text.tool_calls import ArgumentsGrown, CallBegun, Said, ToolCallReader
from lookup_spec.text.tools import Tool, ToolForm, calls_grammar, tool_form

MARK = 7  # stands for a control token's id
FORMS = {
    "tags": tool_form("{% if tools %}<tool_call>", lambda _: None),
    "list": tool_form("{% if tools %}[TOOL_CALLS]", lambda _: MARK),
    "bare": tool_form('{% if tools %}{"name": function name, "parameters": ...}', lambda _: None),
}
TOOLS = [
    Tool("get", {"properties": {"city": {"type": "string"}}, "required": ["city"]}),
    Tool("get_all", {"type": "object"}, strict=True),
]
NAMES = st.sampled_from([tool.name for tool in TOOLS])
TRICKY = st.text(st.sampled_from('a"\\{}[]<>/\n t\té日😀'), max_size=8)
ARGUMENTS = st.fixed_dictionaries({"city": TRICKY}) | st.dictionaries(
    TRICKY, st.recursive(TRICKY | st.integers(), lambda one: st.lists(one, max_size=2)), max_size=2
)
TEXTS = st.text(st.sampled_from("ab <tool_callx>/\n {"), max_size=12)


def written(form: ToolForm, text: str, calls: list[tuple[str, str]]) -> str:
    """An answer as a model would write it."""
    if not calls:
        return text
    each = (form.between or "").join(f"{form.begin}{name}{form.middle}{told}{form.end}" for name, told in calls)
    return text + form.opening + each + form.closing


def read(form: ToolForm, pieces: list[str], *, text: bool) -> tuple[str, list[tuple[str, str]]]:
    reader = ToolCallReader(form, text=text)
    events = [event for piece in pieces for event in reader.push(piece)] + reader.flush()
    said = "".join(event.text for event in events if isinstance(event, Said))
    calls: list[tuple[str, str]] = []
    for event in events:
        if isinstance(event, CallBegun):
            calls.append((event.name, ""))
        elif isinstance(event, ArgumentsGrown):
            assert event.text
            calls[-1] = (calls[-1][0], calls[-1][1] + event.text)
    return said, calls


def cut(text: str, places: list[int]) -> list[str]:
    edges = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[a:b] for a, b in pairwise(edges)]


@given(
    st.sampled_from(list(FORMS)),
    st.lists(st.tuples(NAMES, ARGUMENTS.map(json.dumps)), max_size=3),
    TEXTS,
    st.lists(st.integers(0, 500), max_size=12),
)
def test_what_was_called_is_read_however_the_answer_was_cut(name, calls, text, places):
    """Names, arguments and text come out as they were written, whatever they hold, letter by letter or at once."""
    form = FORMS[name]
    if form.trigger is None:
        calls, text = calls[: None if form.between else 1], "" if calls else text.lstrip("{[")
    else:
        text = text.replace(form.trigger, "")
    whole = written(form, text, calls)
    for pieces in ([whole], list(whole), cut(whole, places)):
        said, found = read(form, pieces, text=True)
        assert found == calls
        assert said == (text.rstrip() if calls else text)
        if calls and not text:
            assert read(form, pieces, text=False) == ("", calls)


@given(st.sampled_from(list(FORMS)), ARGUMENTS.map(json.dumps), st.integers(0, 200))
def test_of_a_call_that_was_cut_off_as_much_is_read_as_there_is(name, arguments, most):
    """The arguments that came are a beginning of those that would have."""
    form = FORMS[name]
    whole = written(form, "", [("get", arguments)])[:most]
    said, calls = read(form, [whole], text=True)
    assert said == (whole if form.trigger and not whole.startswith(form.trigger) else "")
    assert all(found == "get" and arguments.startswith(part) for found, part in calls)


@cache
def grammars() -> tuple[PreTrainedTokenizerFast, Grammars]:
    from tests.text.conftest import byte_level

    tokenizer = byte_level()
    encode = ChatTemplate(tokenizer).encode_data
    return tokenizer, Grammars(Vocabulary(tokenizer), len(tokenizer), encode, [tokenizer.eos_token_id])


def accepts(form: ToolForm, answer: str, *, text: bool, several: bool) -> bool:
    tokenizer, made = grammars()
    mark = () if form.token is None or not answer.startswith(form.opening) else (form.token,)
    ids = [*mark, *tokenizer(answer)["input_ids"]]
    matcher = made.matcher(calls_grammar(form, TOOLS, text=text, several=several))
    return matcher.push(ids) == len(ids) and matcher.may_end


def form_of(name: str) -> ToolForm:
    tokenizer, _ = grammars()
    return FORMS[name] if name != "list" else tool_form("tools [TOOL_CALLS]", lambda _: tokenizer.vocab["<|im_start|>"])


ONE = [("get", '{"city": "Oslo"}')]


@pytest.mark.parametrize("name", FORMS)
def test_a_grammar_has_every_right_answer_and_no_wrong_one(name):
    """Text where it is allowed, calls of functions that there are, one or several, their arguments as a schema says."""
    form = form_of(name)
    right, twice = written(form, "", ONE), written(form, "", ONE * 2)
    for several in (False, True):
        for text in (False, True):
            assert accepts(form, right, text=text, several=several)
            assert accepts(form, "No need.", text=text, several=several) == text
            assert accepts(form, "", text=text, several=several) == text
            assert accepts(form, twice, text=text, several=several) == (several and form.between is not None)
            assert accepts(form, "Well.\n" + right, text=text, several=several) == text
            for wrong in ([("got", "{}")], [("get", "{}")], [("get", '{"city": 5}')], [("get_all", "[]")]):
                assert not accepts(form, written(form, "", wrong), text=text, several=several)
        assert accepts(form, written(form, "", [("get_all", '{"x": [1]}')]), text=False, several=several)


@pytest.mark.parametrize(
    ("template", "form"),
    [
        ("{{ messages }}", None),
        ("{% if tools %}call them in YAML", None),
        ("{% if tools %}<tool_call><function=name>", None),
        ("{% if tools %}[TOOL_CALLS]name[ARGS]", None),
        ("no t.ools <tool_call>", None),
    ],
)
def test_a_template_without_a_known_form_has_none(template, form):
    """A form that is not known is not guessed at."""
    assert tool_form(template, lambda _: None) == form


def test_a_schema_that_cannot_be_enforced_is_refused_if_it_is_strict():
    """The refusal names the field that the schema came from."""
    _, made = grammars()
    schema = {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}}}
    made.matcher(Tool("f", schema, param="tools[3]").grammar)
    with pytest.raises(InvalidRequestError, match="uniqueItems") as refused:
        made.matcher(Tool("f", schema, strict=True, param="tools[3]").grammar)
    assert refused.value.param == "tools[3]"


TOOL_TEMPLATE = (
    "{% for t in tools or [] %}{{ t | tojson }}\n{% endfor %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    "{% for c in m.tool_calls or [] %}{{ c.function.arguments | tojson }}{% endfor %}<|im_end|>\n{% endfor %}"
)


def test_tools_and_calls_are_data_in_the_prompt():
    """Control tokens spelled in a tool's description, in a name of its arguments or in a call stay letters."""
    tokenizer, _ = grammars()
    spelled = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer.backend_tokenizer, eos_token="<|im_end|>", chat_template=TOOL_TEMPLATE
    )
    template = ChatTemplate(spelled)
    tool = Tool("f", {"type": "object", "properties": {"<|im_end|>": {"type": "null"}}}, "<|im_start|>")
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": {"<|im_start|>": "<|im_end|>"}}}
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "", "tool_calls": [call]}]
    ids = template.encode(messages, tools=[tool], add_generation_prompt=False).ids
    assert [ids.count(spelled.vocab[token]) for token in ("<|im_start|>", "<|im_end|>")] == [2, 2]
    text = spelled.decode(ids)
    assert json.loads(text.splitlines()[0]) == tool.told()
    assert '{"<|im_start|>": "<|im_end|>"}' in text

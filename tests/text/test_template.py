from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

from lookup_spec.errors import InvalidRequestError, ModelError
from lookup_spec.text.detokenize import Detokenizer, Vocabulary
from lookup_spec.text.messages import Passage, passage_of
from lookup_spec.text.template import ChatTemplate

LITERALS = ["<|im_end|>", "<|im_start|>", "<|endoftext|>", "<|fim_middle|>"]
BOS_TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}[{{ m['role'] }}] {{ m['content'] | trim }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)
NO_SYSTEM = (
    "{% for m in messages %}{% if m['role'] == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}<|im_start|>{{ m['role'] }}\n{{ m['content'] | trim }}<|im_end|>\n{% endfor %}"
)
CONTENTS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from(" \n"), max_size=30)
HOSTILE = st.lists(CONTENTS | st.sampled_from([*LITERALS, "<|im_", "end|>", "<", "\ue000"])).map("".join)


@pytest.fixture(scope="session")
def template(chatml: PreTrainedTokenizerFast) -> ChatTemplate:
    return ChatTemplate(chatml)


def user(content: object) -> dict[str, object]:
    return {"role": "user", "content": content}


def control_ids(tokenizer: PreTrainedTokenizerFast) -> set[int]:
    return {tokenizer.convert_tokens_to_ids(text) for text in LITERALS}


def with_template(tokenizer: PreTrainedTokenizerFast, source: object) -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer.backend_tokenizer, **tokenizer.special_tokens_map, chat_template=source
    )


@given(contents=st.lists(CONTENTS, min_size=1, max_size=4))
def test_ordinary_messages_get_the_ids_of_apply_chat_template(chatml, template, contents):
    """For contents that spell no control token the ids are those of the transformers library."""
    messages = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(contents)]
    expected = chatml.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    assert list(template.encode(messages).ids) == expected


@given(content=HOSTILE)
def test_message_text_never_becomes_a_control_token(chatml, template, content):
    """Whatever a message spells, the only control tokens are the template's, and the text is kept."""
    ids = template.encode([user(content)]).ids
    assert [i for i in ids if i in control_ids(chatml)] == [
        chatml.convert_tokens_to_ids(text) for text in ("<|im_start|>", "<|im_end|>", "<|im_start|>")
    ]
    shown = chatml.decode(ids, clean_up_tokenization_spaces=False)
    assert shown == f"<|im_start|>user\n{content}<|im_end|>\n<|im_start|>assistant\n"


@given(text=HOSTILE)
def test_data_never_becomes_a_control_token(chatml, template, text):
    """Text encoded as data decodes to itself and holds no control token."""
    ids = template.encode_data(text)
    assert not control_ids(chatml).intersection(ids)
    stream = Detokenizer(Vocabulary(chatml))
    assert stream.push_all(ids) + stream.flush() == text


@given(before=HOSTILE, document=HOSTILE, after=HOSTILE)
def test_a_passage_is_found_among_the_ids(chatml, template, before, document, after):
    """The tokens of a passage's span spell a part of it, lacking at most what merged with its neighbours."""
    passage = Passage(0, len(before), len(before) + len(document))
    messages = [user(before + document + after)]
    prompt = template.encode(messages, passages=[passage])
    assert prompt.ids == template.encode(messages).ids
    [(start, end)] = prompt.spans
    vocabulary = Vocabulary(chatml)
    inside = b"".join(vocabulary.piece(i) for i in prompt.ids[start:end]).decode(errors="ignore")
    assert inside in document
    longest = max(map(len, vocabulary.pieces))
    assert len(inside.encode()) >= len(document.encode()) - 2 * longest


def test_the_span_of_a_fenced_document_is_exact(chatml, template):
    """Between fence lines the span is the document's tokens, all of them and no others."""
    document = "def add(a, b):\n    return a + b\n"
    messages = [user(f"Edit:\n```\n{document}```\nReturn the file.")]
    prompt = template.encode(messages, passages=[passage_of(messages, document)])
    [(start, end)] = prompt.spans
    assert chatml.decode(prompt.ids[start:end], clean_up_tokenization_spaces=False) == document


def test_two_passages_and_a_dropped_one(chatml):
    """Spans come in the order asked for; a passage that the template leaves out has none."""
    source = "{% for m in messages if m['role'] != 'tool' %}{{ m['content'] }}\n{% endfor %}"
    template = ChatTemplate(chatml, override=source)
    messages = [user("one two"), {"role": "tool", "content": "three"}]
    prompt = template.encode(messages, passages=[Passage(0, 3, 7), Passage(1, 0, 5), Passage(0, 0, 3)])
    second, dropped, first = prompt.spans
    assert dropped is None
    assert chatml.decode(prompt.ids[slice(*first)]) + chatml.decode(prompt.ids[slice(*second)]) == "one two"


def test_parts_of_a_message_cannot_form_a_control_token(template):
    """Text parts are joined by line breaks, so that no control token arises between two of them."""
    parts = [{"type": "text", "text": "<|im_"}, {"type": "text", "text": "end|>"}]
    assert template.encode([user(parts)]) == template.encode([user("<|im_\nend|>")])


@pytest.mark.parametrize("prefix", [True, False])
@pytest.mark.parametrize("text", ["a </s> b", "<s>a", "</s></s>\n<s>", "</s", " <unk>"])
def test_sentencepiece_data_stays_data(families, prefix, text):
    """In a SentencePiece tokenizer too, spelled control tokens stay text, with no space added inside."""
    tokenizer = families("sentencepiece with prefix" if prefix else "sentencepiece")
    ids = ChatTemplate(tokenizer).encode_data(text)
    assert not {tokenizer.bos_token_id, tokenizer.eos_token_id}.intersection(ids)
    assert Detokenizer(Vocabulary(tokenizer)).push_all(ids) == text


@pytest.mark.parametrize("name", ["sentencepiece", "sentencepiece with prefix"])
@pytest.mark.parametrize("source", [BOS_TEMPLATE, BOS_TEMPLATE.replace("{{ bos_token }}", "")])
def test_there_is_exactly_one_start_token(families, name, source):
    """Written by the template or not, spelled in a prompt or not: one start token, at position 0."""
    tokenizer = families(name)
    template = ChatTemplate(tokenizer, override=source)
    prompts = [
        template.encode([user("hello")]).ids,
        template.encode([user("<s>hello")]).ids,
        template.encode([user("a"), {"role": "assistant", "content": "b"}], continue_final_message=True).ids,
        template.encode_raw("hello"),
        template.encode_raw("<s>hello"),
        template.encode_raw("<s><s>hello"),
        template.encode_raw(""),
    ]
    for ids in prompts:
        assert ids[0] == tokenizer.bos_token_id
        assert ids.count(tokenizer.bos_token_id) == 1
    assert prompts[3] == prompts[4] == tuple(tokenizer("hello")["input_ids"])
    assert tokenizer.bos_token_id not in template.encode_data("hello")


def test_spans_count_the_start_token(families):
    """A start token that the template does not write moves the spans along."""
    tokenizer = families("sentencepiece")
    template = ChatTemplate(tokenizer, override=BOS_TEMPLATE.replace("{{ bos_token }}", ""))
    prompt = template.encode([user("one two")], passages=[Passage(0, 0, 3)])
    [(start, end)] = prompt.spans
    assert prompt.ids[0] == tokenizer.bos_token_id
    assert tokenizer.decode(prompt.ids[start:end]).strip() == "one"


def test_no_start_token_is_added_where_the_tokenizer_has_none(chatml, template):
    """A tokenizer that puts nothing before a text gets nothing put before its prompts."""
    assert template.start == ()
    assert list(template.encode_raw("hello")) == chatml("hello")["input_ids"]
    assert chatml.decode(ChatTemplate(chatml, override=BOS_TEMPLATE).encode([user("a")]).ids).startswith("[user]")


def test_a_raw_prompt_may_use_control_tokens(chatml, template):
    """In a plain prompt control tokens are read as such: it is the caller's own."""
    assert chatml.convert_tokens_to_ids("<|im_start|>") in template.encode_raw("<|im_start|>user\n")


@pytest.mark.parametrize("beginning", ["```python\n", "  a", "a\n\n", "<|im_end|>\n"])
@pytest.mark.parametrize("trims", [True, False])
def test_an_answer_can_be_begun(chatml, beginning, trims):
    """A final assistant message is left open, and keeps the white space at its end, trimmed or not."""
    source = chatml.chat_template.replace("m['content']", "m['content'] | trim" if trims else "m['content']")
    template = ChatTemplate(chatml, override=source)
    prompt = template.encode([user("x"), {"role": "assistant", "content": beginning}], continue_final_message=True)
    shown = beginning.lstrip() if trims else beginning
    assert chatml.decode(prompt.ids, clean_up_tokenization_spaces=False).endswith(f"assistant\n{shown}")


def test_only_an_assistants_message_can_be_continued(template):
    """Continuing a user's message is refused, naming its role."""
    with pytest.raises(InvalidRequestError, match="'user'"):
        template.encode([user("x")], continue_final_message=True)


def test_a_rejected_system_message_goes_into_the_first_user_message(chatml):
    """Where the template rejects the system role, its text opens the first user message."""
    template = ChatTemplate(with_template(chatml, NO_SYSTEM))
    assert not template.takes_system
    system = {"role": "system", "content": "Be brief."}
    assert template.encode([system, user("hi")]) == template.encode([user("Be brief.\n\nhi")])
    assert template.encode([system]) == template.encode([user("Be brief.")])
    prompt = template.encode([system, user("hi")], passages=[Passage(1, 0, 2)])
    assert chatml.decode(prompt.ids[slice(*prompt.spans[0])]).strip() == "hi"


def test_a_system_message_elsewhere_is_refused_with_the_templates_reason(chatml):
    """A system message that the template rejects later in the conversation is refused, naming the role."""
    template = ChatTemplate(with_template(chatml, NO_SYSTEM))
    with pytest.raises(InvalidRequestError, match=r"user, system: System role not supported"):
        template.encode([user("hi"), {"role": "system", "content": "x"}])


def test_developer_is_read_as_system(template):
    """A template that does not know the developer role gets a system message instead."""
    messages = [{"role": "developer", "content": "x"}, user("y")]
    assert template.encode(messages) == template.encode([{"role": "system", "content": "x"}, user("y")])


@pytest.mark.parametrize(
    ("own", "reason"),
    [
        (None, "no chat template"),
        ("{% for m in messages %}{{ m['content'] }", "has an error in line 1"),
        ({"tool_use": "a", "rag": "b"}, "several chat templates (rag, tool_use)"),
    ],
)
def test_a_model_that_cannot_chat_says_why_and_completes_all_the_same(chatml, own, reason):
    """Without a usable template chats are refused with a sentence, and plain prompts work."""
    template = ChatTemplate(with_template(chatml, own))
    with pytest.raises(InvalidRequestError, match=re.escape(reason)) as caught:
        template.encode([user("x")])
    assert str(caught.value) == template.problem
    assert "--chat-template" in template.problem
    assert template.encode_raw("x")
    assert template.encode_data("x")


def test_of_several_templates_the_default_or_the_named_one_is_used(chatml):
    """Named templates: "default" unless another is asked for by name."""
    tokenizer = with_template(
        chatml, {"default": "d {{ messages[0]['content'] }}", "plain": "p {{ messages[0]['content'] }}"}
    )
    assert chatml.decode(ChatTemplate(tokenizer).encode([user("x")]).ids) == "d x"
    assert chatml.decode(ChatTemplate(tokenizer, override="plain").encode([user("x")]).ids) == "p x"


def test_a_template_file_replaces_the_models_own(chatml, tmp_path):
    """A path to a Jinja file is read as the template."""
    path = tmp_path / "chat.jinja"
    path.write_text("file {{ messages[0]['content'] }}", encoding="utf-8")
    assert chatml.decode(ChatTemplate(chatml, override=str(path)).encode([user("x")]).ids) == "file x"


@pytest.mark.parametrize("override", ["missing.jinja", "{{ broken", "\0"])
def test_a_broken_or_missing_override_is_refused_at_start(chatml, tmp_path, monkeypatch, override):
    """A template given by the user must exist and compile, or nothing starts."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match="chat template"):
        ChatTemplate(chatml, override=override)


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"content": "x"}],
        [{"role": 3, "content": "x"}],
        [user([{"type": "image_url", "image_url": {"url": "x"}}])],
        [user(7)],
        [user("\ud800")],
    ],
)
def test_malformed_messages_are_refused(template, messages):
    """Messages without role or text, or with half a surrogate pair, are refused as the caller's mistake."""
    with pytest.raises(InvalidRequestError):
        template.encode(messages)


def test_padding_and_truncation_of_the_tokenizer_do_not_apply(families):
    """A tokenizer saved with padding and truncation on encodes prompts whole and unpadded."""
    backend = Tokenizer.from_str(families("bytes alone").backend_tokenizer.to_str())
    backend.enable_padding(length=20)
    backend.enable_truncation(5)
    template = ChatTemplate(PreTrainedTokenizerFast(tokenizer_object=backend))
    assert len(template.encode_raw("0123456789")) == 10

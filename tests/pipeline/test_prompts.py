"""What the engine is told about prompts of several forms, with a small real tokenizer."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup_spec.pipeline.prompts import Told, chat_prompt, text_prompt
from lookup_spec.propose.prompt import Prompt
from lookup_spec.text.retokenize import TokenizerRetokenizer
from lookup_spec.text.template import ChatTemplate
from tests.server.tiny_service import tiny_tokenizer

CODE = "def add(a, b):\n    return a + b  # naïve ✅\n"
FENCED = f"```python\n{CODE}```"
END = (7,)
tokenizer = tiny_tokenizer()
template, retokenizer = ChatTemplate(tokenizer), TokenizerRetokenizer(tokenizer.backend_tokenizer)


def text(ids: tuple[int, ...]) -> str:
    return tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)


def user(content: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": content}]


def base(told: Told) -> str:
    """The text of the base span."""
    [span] = told.prompt.spans
    assert span.kind == "base"
    return text(told.prompt.ids[span.start : span.end])


def prediction(told: Told) -> tuple[str, str]:
    """What opens the predicted answer, and all of it but the end token."""
    [reference] = told.prompt.references
    assert reference.kind == "prediction"
    assert reference.ids[-1:] == END
    return text(reference.ids[: reference.opening]), text(reference.ids[:-1])


def test_a_chat_is_told_its_text_to_edit() -> None:
    """The span is the text, the prediction the answer in its fence, tokenized as an answer; the ids stay."""
    messages = user(f"{FENCED}\nAdd types.")
    told = chat_prompt(template, messages, end=END)
    assert told.prompt.ids == template.encode(messages).ids
    assert base(told) == CODE
    assert prediction(told) == ("```python\n", FENCED)
    assert told.prompt.references[0].ids[:-1] == template.encode_data(FENCED)
    assert told.predicted == len(template.encode_data(FENCED)) - len(template.encode_data("```python\n```"))


def test_a_begun_answer_is_predicted_from_where_it_stands() -> None:
    messages = [*user(f"{FENCED}\nAdd types."), {"role": "assistant", "content": "```python\n"}]
    told = chat_prompt(template, messages, continuing=True, end=END)
    assert told.prompt.ids == template.encode(messages, continue_final_message=True).ids
    assert prediction(told) == ("", f"{CODE}```")


def test_a_chat_about_nothing_is_told_nothing() -> None:
    messages = user("What is a monad?")
    assert chat_prompt(template, messages, end=END) == Told(Prompt(template.encode(messages).ids), 0)


@pytest.mark.parametrize("sent", [CODE, CODE.strip(), f"\n{CODE}"])
def test_a_sent_prediction_of_the_text_to_edit_stands_in_its_frame(sent: str) -> None:
    """The layout knows more than the prediction: how the answer begins and ends."""
    told = chat_prompt(template, user(f"{FENCED}\nAdd types."), prediction=sent, end=END)
    assert prediction(told) == ("```python\n", FENCED)


def test_another_prediction_wins_over_the_layout() -> None:
    """It is followed as it is, and where it stands in the messages is the base."""
    messages = user(f"Here is x = 1\nand {FENCED}")
    told = chat_prompt(template, messages, prediction="x = 1", end=END)
    assert prediction(told) == ("", "x = 1")
    assert base(told).strip() == "x = 1"
    assert told.predicted == len(template.encode_data("x = 1"))
    elsewhere = chat_prompt(template, messages, prediction="y = 2", end=END)
    assert prediction(elsewhere) == ("", "y = 2")
    assert elsewhere.prompt.spans == ()


def test_text_to_edit_never_becomes_a_control_token() -> None:
    """A document that spells control tokens is predicted letter by letter."""
    evil = "x = '<|im_end|>'\n"
    told = chat_prompt(template, user(f"```\n{evil}```"), end=END)
    [reference] = told.prompt.references
    control = tokenizer.convert_tokens_to_ids("<|im_end|>")
    assert control not in reference.ids
    assert prediction(told)[1] == f"```\n{evil}```"


def rendered(content: str) -> tuple[int, ...]:
    return template.encode(user(content)).ids


def test_a_rendered_chat_is_told_the_same_as_its_messages() -> None:
    content = f"{FENCED}\nAdd types."
    told = text_prompt(rendered(content), retokenizer, end=END)
    assert told == chat_prompt(template, user(content), end=END)


def test_characters_cut_by_tokens_are_predicted_as_they_stand() -> None:
    """Single tokens of a split character have no text, but the prompt's own tokens are used."""
    told = text_prompt(rendered(f"```\n{'✅🫠' * 9}\n```"), retokenizer, end=END)
    assert prediction(told)[1] == f"```\n{'✅🫠' * 9}\n```"


def test_marks_of_the_cursor_are_not_predicted() -> None:
    prompt = "<|editable_region_start|>\nx = <|user_cursor_is_here|>1\n<|editable_region_end|>\n### Response:\n"
    told = text_prompt(template.encode_raw(prompt), retokenizer, end=END)
    assert prediction(told) == ("", "x = 1\n<|editable_region_end|>")
    assert base(told) == "x = <|user_cursor_is_here|>1"


def test_a_plain_text_is_told_nothing() -> None:
    ids = template.encode_raw("def add(a, b):\n    return")
    told = text_prompt(ids, retokenizer, end=END)
    assert (told.prompt.ids, told.prompt.spans, told.prompt.references, told.predicted) == (ids, (), (), 0)


MARKS = ["```", "```py\n", "\n", "x", " ", "é✅", "<|code_to_edit|>\n", "<|/code_to_edit|>", "<|cursor|>"]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(MARKS), max_size=12).map("".join))
def test_spans_lie_in_the_prompt_whatever_it_is(content: str) -> None:
    """For any text, in a chat or rendered, spans and openings are in range and the ids are the template's."""
    for told in (chat_prompt(template, user(content)), text_prompt(rendered(content), retokenizer)):
        assert told.prompt.ids == rendered(content)
        assert all(0 <= span.start < span.end <= len(told.prompt.ids) for span in told.prompt.spans)
        assert all(0 <= one.opening <= len(one.ids) for one in told.prompt.references)
        assert told.predicted >= 0

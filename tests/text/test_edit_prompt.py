from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from lookup_spec.errors import EditError
from lookup_spec.text.detokenize import Vocabulary
from lookup_spec.text.edit_prompt import REQUEST, SYSTEM, edit_prompt
from lookup_spec.text.template import ChatTemplate

CODE = "def add(a, b):\n    return a + b\n"
TEXTS = st.text(st.sampled_from(["a", "`", "\n", "```\n", "<|im_end|>", "é"]), max_size=12)


@pytest.fixture(scope="session")
def template(chatml: PreTrainedTokenizerFast) -> ChatTemplate:
    return ChatTemplate(chatml)


def test_the_layout_puts_the_file_first_and_the_instruction_last():
    """System line, file in a fence, instruction, request; then the answer's fence, opened."""
    prompt = edit_prompt(CODE, " Swap them. ", "src/add.py")
    assert [message["content"] for message in prompt.messages] == [
        SYSTEM,
        f"File src/add.py:\n```python\n{CODE}```\n\nSwap them.\n\n{REQUEST}",
        "```python\n",
    ]


@given(base=st.lists(st.sampled_from(["a", "`", "\n", "```\n", "<|im_end|>", "é"])).map("".join))
def test_the_span_of_the_file_is_told(chatml, template, base):
    """The passage is the file in the message, and its span the file in the ids, but for merged edges."""
    prompt = edit_prompt(base, "x", "a.md")
    place = prompt.passage
    assert prompt.messages[place.message]["content"][place.start : place.end] == base
    encoded = prompt.encode(template)
    [(start, end)] = encoded.spans
    vocabulary = Vocabulary(chatml)
    inside = b"".join(vocabulary.piece(i) for i in encoded.ids[start:end]).decode()
    assert inside in base
    assert len(base) - len(inside) <= 4


def test_the_fence_is_longer_than_those_in_the_file():
    """Backticks in the file make the fence longer; in documents, where blocks get added, it has four."""
    assert edit_prompt("````\n", "x", "a.py").fence == "`````"
    assert edit_prompt("a\n", "x", "a.py").fence == "```"
    assert edit_prompt("a\n", "x", "README.md").fence == "````"


def test_a_file_without_final_newline_does_not_swallow_the_fence():
    """The closing fence stands on its own line, and the answer gets no final newline either."""
    prompt = edit_prompt("a = 1", "x", "a.py")
    assert "\na = 1\n```\n" in prompt.messages[1]["content"]
    reader = prompt.reader()
    assert reader.push("a = 2\n```") + reader.finish() == "a = 2"


def test_a_model_without_template_can_edit(chatml):
    """Without a chat template the texts stand one below the other, still as data, with the file's span."""
    bare = PreTrainedTokenizerFast(tokenizer_object=chatml.backend_tokenizer)
    prompt = edit_prompt("a<|im_end|>\n", "Swap.", "a.py")
    encoded = prompt.encode(ChatTemplate(bare))
    text = chatml.decode(encoded.ids, clean_up_tokenization_spaces=False)
    assert text == "\n\n".join(message["content"] for message in prompt.messages)
    assert chatml.convert_tokens_to_ids("<|im_end|>") not in encoded.ids
    [(start, end)] = encoded.spans
    assert chatml.decode(encoded.ids[start:end]) == "a<|im_end|>\n"


@pytest.mark.parametrize(
    ("path", "opening"),
    [
        ("a.rs", "```rust\n"),
        ("A.TS", "```typescript\n"),
        ("Makefile", "```\n"),
        ("x.we`ird", "```\n"),
        ("", "```\n"),
    ],
)
def test_the_language_comes_from_the_name(path, opening):
    """Known suffixes give the language's name, others themselves, odd ones nothing."""
    assert edit_prompt("a\n", "x", path).messages[2]["content"] == opening


def test_a_path_stays_on_its_line():
    """Line breaks in a path do not get into the prompt."""
    assert "File a ```b.py:\n" in edit_prompt("a\n", "x", "a\n```b.py").messages[1]["content"]


def test_an_edit_needs_an_instruction():
    """An empty instruction is refused."""
    with pytest.raises(EditError, match="instruction"):
        edit_prompt("a\n", " \n")

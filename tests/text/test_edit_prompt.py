from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from lookup_spec.errors import EditError
from lookup_spec.text.detokenize import Vocabulary
from lookup_spec.text.edit_prompt import REQUEST, REQUEST_LINES, SYSTEM, EditPrompt, edit_prompt
from lookup_spec.text.edit_task import File, Instruction, NextEdit, Update
from lookup_spec.text.lines import SourceText
from lookup_spec.text.template import ChatTemplate

CODE = "def add(a, b):\n    return a + b\n"
TEXTS = st.text(st.sampled_from(["a", "`", "\n", "```\n", "<|im_end|>", "é"]), max_size=12)


def asked(text: str, instruction: str, path: str = "") -> EditPrompt:
    return edit_prompt(File(SourceText.from_text(text).lines, path), Instruction(instruction))


@pytest.fixture(scope="session")
def template(chatml: PreTrainedTokenizerFast) -> ChatTemplate:
    return ChatTemplate(chatml)


def test_the_layout_puts_the_file_first_and_the_instruction_last():
    """System line, file in a fence, instruction, request; then the answer's fence, opened."""
    prompt = asked(CODE, " Swap them. ", "src/add.py")
    assert [message["content"] for message in prompt.messages] == [
        SYSTEM,
        f"File src/add.py:\n```python\n{CODE}```\n\nSwap them.\n\n{REQUEST}",
        "```python\n",
    ]


@given(base=st.lists(st.sampled_from(["a", "`", "\n", "```\n", "<|im_end|>", "é"])).map("".join))
def test_the_span_of_the_file_is_told(chatml, template, base):
    """The passage is the file in the message, and its span the file in the ids, but for merged edges."""
    prompt = asked(base, "x", "a.md")
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
    assert asked("````\n", "x", "a.py").fence == "`````"
    assert asked("a\n", "x", "a.py").fence == "```"
    assert asked("a\n", "x", "README.md").fence == "````"


def test_a_file_without_final_newline_does_not_swallow_the_fence():
    """The closing fence stands on its own line, and the answer gets no final newline either."""
    prompt = asked("a = 1", "x", "a.py")
    assert "\na = 1\n```\n" in prompt.messages[1]["content"]
    reader = prompt.reader()
    assert reader.push("a = 2\n```") + reader.finish() == "a = 2"


def test_a_model_without_template_can_edit(chatml):
    """Without a chat template the texts stand one below the other, still as data, with the file's span."""
    bare = PreTrainedTokenizerFast(tokenizer_object=chatml.backend_tokenizer)
    prompt = asked("a<|im_end|>\n", "Swap.", "a.py")
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
    assert asked("a\n", "x", path).messages[2]["content"] == opening


def test_a_path_stays_on_its_line():
    """Line breaks in a path do not get into the prompt."""
    assert "File a ```b.py:\n" in asked("a\n", "x", "a\n```b.py").messages[1]["content"]


def test_an_edit_needs_an_instruction():
    """An empty instruction is refused."""
    with pytest.raises(EditError, match="instruction"):
        asked("a\n", " \n")


FILE = File(("a = 1\n", "b = 2\n", "c = 3\n", "d = 4\n"), "x.py")


def question(prompt: EditPrompt) -> str:
    return prompt.messages[1]["content"]


def within(prompt: EditPrompt) -> str:
    place = prompt.passage
    return prompt.messages[place.message]["content"][place.start : place.end]


def test_lines_to_edit_stand_behind_the_file():
    """The file comes first, as for any edit of it; the answer replaces the lines alone."""
    prompt = edit_prompt(FILE, Instruction("Swap."), lines=(1, 3))
    start = "File x.py:\n```python\na = 1\nb = 2\nc = 3\nd = 4\n```\n\n"
    assert question(edit_prompt(FILE, Instruction("Other."))).startswith(start)
    assert question(prompt) == (
        f"{start}Lines 2 to 3, which are to be edited:\n```python\nb = 2\nc = 3\n```\n\nSwap.\n\n{REQUEST_LINES}"
    )
    assert prompt.base == within(prompt) == "b = 2\nc = 3\n"
    assert prompt.unchanged() == "b = 2\nc = 3\n```"


def test_a_part_of_the_file_is_shown_as_such():
    """With the lines to edit behind it, unless it is nothing else."""
    prompt = edit_prompt(FILE, Instruction("Swap."), lines=(1, 2), shown=(1, 4))
    assert question(prompt).startswith(
        "Lines 2 to 4 of file x.py:\n```python\nb = 2\nc = 3\nd = 4\n```\n\nLines 2 to 2,"
    )
    prompt = edit_prompt(FILE, Instruction("Swap."), lines=(1, 3), shown=(1, 3))
    assert question(prompt) == f"Lines 2 to 3 of file x.py:\n```python\nb = 2\nc = 3\n```\n\nSwap.\n\n{REQUEST_LINES}"
    assert within(prompt) == "b = 2\nc = 3\n"


def test_other_files_stand_before_the_file():
    """Each in a fence of its own."""
    prompt = edit_prompt(FILE, Instruction("x"), others=(File(("```\n",), "n.md"), File(("y = 1",), "y.py")))
    assert question(prompt).startswith(
        "File n.md:\n````markdown\n```\n````\n\nFile y.py:\n```python\ny = 1\n```\n\nFile x.py:\n```python\n"
    )
    assert within(prompt) == prompt.base == "".join(FILE.lines)


def test_an_update_is_shown_behind_the_file():
    """In a fence of its own, and with what it is about; the answer's fence is longer than any in both."""
    prompt = edit_prompt(FILE, Update("# ... existing code ...\nd = '''````'''", "Quote d."))
    assert "```\n\nQuote d.\n\nMerge this update" in question(prompt)
    assert "`````python\n# ... existing code ...\nd = '''````'''\n`````\n\n" in question(prompt)
    assert prompt.messages[2]["content"] == "`````python\n"
    assert prompt.fence == "`````"


def test_the_next_edit_is_asked_for_with_the_latest_ones():
    """The history as a diff, then where the cursor stands."""
    prompt = edit_prompt(FILE, NextEdit(("-a = 0\n+a = 1\n", "-b = 1\n+b = 2\n"), (1, 4)), lines=(0, 3))
    asked = question(prompt).partition("to be edited:")[2]
    assert "```diff\n-a = 0\n+a = 1\n\n-b = 1\n+b = 2\n```\n\n" in asked
    assert "in line 2, at the bar: b = |2\n" in asked


@pytest.mark.parametrize("task", [Instruction("\n"), Update(" \n")])
def test_there_must_be_something_to_do(task):
    with pytest.raises(EditError, match="empty"):
        edit_prompt(FILE, task)


@pytest.mark.parametrize(
    ("language", "tag"),
    [("typescriptreact", "tsx"), ("Python", "python"), ("plaintext", "text"), ("objective-c", ""), ("go.mod", "")],
)
def test_the_editor_knows_the_language(language, tag):
    """What an editor calls the language goes before the name's suffix."""
    assert File((), "a.rb", language).tag == tag

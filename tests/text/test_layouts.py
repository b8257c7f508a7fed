"""Prompts as clients build them; the texts in them are ours, only the marks are the clients'."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup_spec.text.conversation import Layout
from lookup_spec.text.layouts import layout_of, layout_of_text
from lookup_spec.text.messages import Passage

CODE = "import sys\n\n\ndef main(argv):\n    return len(argv)\n"
OTHER = "def helper():\n    return 1\n"
END = "\n"


def user(content: str) -> dict[str, str]:
    return {"role": "user", "content": content}


def system(content: str) -> dict[str, str]:
    return {"role": "system", "content": content}


def assistant(content: str) -> dict[str, str]:
    return {"role": "assistant", "content": content}


def chatml(*messages: dict[str, str]) -> str:
    """A conversation as a client renders it itself."""
    turns = [f"<|im_start|>{one['role']}\n{one['content']}<|im_end|>\n" for one in messages]
    return "".join([*turns, "<|im_start|>assistant\n"])


def expected(layout: Layout | None) -> str:
    assert layout is not None
    return layout.opening + layout.text + layout.closing


def shown(layout: Layout | None, messages: list[dict[str, str]]) -> str:
    """What stands at the layout's passage."""
    assert layout is not None
    passage = layout.passage
    return messages[passage.message]["content"][passage.start : passage.end]


def zeta_1(region: str) -> str:
    return (
        "### Instruction:\nComplete the code.\n\n### User Edits:\n\nUser edited a.py:\n```diff\n-x\n+y\n```\n\n"
        f"### User Excerpt:\n\n```a.py\n<|start_of_file|>\nimport os\n<|editable_region_start|>\n{region}\n"
        "<|editable_region_end|>\nprint(1)\n```\n\n### Response:\n"
    )


def zeta_2(region: str) -> str:
    return (
        f"<[fim-suffix]>\nprint(1)\n<[fim-prefix]><filename>b.py\n{OTHER}\n<filename>edit_history\n"
        f"--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x\n+y\n<filename>a.py\nimport os\n"
        f"<<<<<<< CURRENT\n{region}\n=======\n<[fim-middle]>"
    )


def zeta_21(region: str) -> str:
    return f"<[fim-suffix]>\nprint(1)\n<[fim-prefix]><filename>a.py\nimport os\n{region}\n<[fim-middle]>"


def sweep(window: str) -> str:
    return (
        f"<|file_sep|>b.py\n{OTHER}\n<|file_sep|>a.py.diff\noriginal:\nx\nupdated:\ny\n"
        f"<|file_sep|>original/a.py\nx = 0\n<|file_sep|>current/a.py\n{window}\n<|file_sep|>updated/a.py\n"
    )


def tabby(current: str) -> str:
    return f"<|original_code|>\n{OTHER}\n<|edits_diff|>\n-x\n+y\n<|current_version|>\n{current}\n<|next_version|>\n"


def mercury(region: str) -> str:
    return (
        "<|recently_viewed_code_snippets|>\n<|/recently_viewed_code_snippets|>\n\n<|current_file_content|>\n"
        f"current_file_path: a.py\nimport os\n<|code_to_edit|>\n{region}\n<|/code_to_edit|>\nprint(1)\n"
        "<|/current_file_content|>\n\n<|edit_diff_history|>\n--- a.py\n<|/edit_diff_history|>\n\n"
        "Rewrite what stands between `<|code_to_edit|>` and `<|/code_to_edit|>`.\n```\n// here\n```"
    )


def instinct(region: str) -> str:
    return (
        f"### Context:\n<|context_file|>: b.py\n<|snippet|>:\n{OTHER}\n\n### User Edits:\n\nEdit, file a.py\n\n"
        f"### User Excerpt:\na.py\n\nimport os\n<|editable_region_start|>\n{region}\n<|editable_region_end|>\n"
        "print(1)\n### Response:"
    )


def vim_selection(selection: str) -> str:
    rule = "-" * 40
    return (
        "Apply the INSTRUCTION to the SELECTION.\n\n"
        f"--- CONTEXT     {rule}\n{OTHER}\n--- PREFIX      {rule}\nimport os\n"
        f"--- SELECTION   {rule}\n{selection}\n--- SUFFIX      {rule}\nprint(1)\n"
    )


def vscode_edit(text: str) -> str:
    return (
        "Modify the original code and output only that."
        f"\n\ninstructions:\nadd types\n\noriginal code:\n{text}\n\nmodified code:"
    )


LINES = CODE.removesuffix("\n")
WITH_CURSOR = LINES.replace("len(argv)", "len(<|user_cursor_is_here|>argv)")
FENCED = f"```python\n{CODE}```"

RAW = {
    "zeta 1": (zeta_1(WITH_CURSOR), f"{LINES}\n<|editable_region_end|>"),
    "zeta 2": (zeta_2(LINES.replace("argv", "argv<|user_cursor|>", 1)), f"{CODE}>>>>>>> UPDATED\n"),
    "zeta 2.1": (
        zeta_21("<|marker_1|>\nx = 1\n<|marker_2|>\ny = <|user_cursor|>2\n<|marker_3|>"),
        "<|marker_1|>\nx = 1\n<|marker_2|>\ny = 2\n<|marker_3|>",
    ),
    "sweep": (sweep(LINES), LINES),
    "sweep with cursor": (sweep(LINES.replace("sys", "<|cursor|>sys")), LINES),
    "tabby": (tabby(LINES), f"{LINES}\n"),
    "a rendered chat": (chatml(system("You edit."), user(f"{FENCED}\nadd types")), FENCED),
    "a rendered chat that ends with a fence": (chatml(user(f"Add types.\n{FENCED}")), FENCED),
    "a rendered chat with a pasted text": (
        chatml(system("You edit.\n\nAlways."), user(f"Fix this file.\n\n{CODE * 3}")),
        (CODE * 3).removesuffix("\n"),
    ),
    "an instruction form": (f"### Instruction: add types\n\n### Input:\n\n{FENCED}\n\n### Response:\n\n", FENCED),
    "an opened fence": (f"[INST] add types\n{FENCED}\n [/INST]\n```python\n", f"{CODE}```"),
    "a fence opened without its line's end": (f"[INST] add types\n{FENCED}\n [/INST]\n```python", f"\n{CODE}```"),
}
CHATS = {
    "mercury": (
        [system("You complete code."), user(mercury(LINES.replace("sys", "sys<|cursor|>")))],
        f"```\n{LINES}\n```",
    ),
    "instinct": ([system("You edit."), user(instinct(WITH_CURSOR))], f"{LINES}\n<|editable_region_end|>"),
    "morph": (
        [user(f"<instruction>add types</instruction>\n<code>{LINES}</code>\n<update># ... existing code ...</update>")],
        LINES,
    ),
    "morph without an instruction, with final newlines": (
        [user(f"<code>{CODE}</code>\n<update># ... existing code ...\n</update>")],
        LINES,
    ),
    "morph with tags in the code": (
        [user("<instructions>x</instructions>\n<code><p>\n<code>a</code>\n</p></code>\n<update>y</update>")],
        "<p>\n<code>a</code>\n</p>",
    ),
    "llama.vim": ([system(vim_selection(LINES)), user("INSTRUCTION: add types")], LINES),
    "llama.vscode": ([system("You code."), user(OTHER), user(vscode_edit(LINES))], LINES),
    "continue, apply": (
        [
            user(f"ORIGINAL CODE:\n```\n{CODE}```\n\nSUGGESTED EDIT:\n```\n{OTHER}```\n\nApply the SUGGESTED EDIT."),
            assistant("```\n"),
        ],
        f"{CODE}```",
    ),
    "continue, apply to a file with fences": (
        [user(f"ORIGINAL CODE:\n```\n# A\n```\nx\n```\n\nSUGGESTED EDIT:\n```\n{OTHER}```\n"), assistant("```\n")],
        "# A\n```\nx\n```",
    ),
    "continue, edit in a file": (
        [
            user(
                f"This is the prefix of the file:\n```python\n{CODE * 3}```\n\n"
                f"This is the code to rewrite:\n{FENCED}\n\nRequest: add types\n\nThe rewritten code:"
            )
        ],
        FENCED,
    ),
    "continue, edit a whole file": (
        [user(f"{FENCED}\n\nRewrite the above.\n\nadd types\n\nDO NOT surround the code in a code block.")],
        LINES,
    ),
    "aider, whole files": (
        [
            system("Answer with whole files."),
            user(
                "I have *added these files to the chat* so you can edit them.\n\n"
                f"a.py\n{FENCED}\n\nb.py\n```\n{OTHER}```\n"
            ),
            assistant("Ok."),
            user("add types"),
        ],
        f"a.py\n{FENCED}\n\nb.py\n```\n{OTHER}```",
    ),
    "a fence": ([user(f"Add types to a.py.\n\n{FENCED}\n")], FENCED),
    "a fence with more than a language": ([user(f"```python title=a.py\n{CODE}```\nAdd types.")], FENCED),
    "a fence longer than those in the file": (
        [user("Fix this.\n````md\n# A\n```sh\nls\n```\n````\nThanks")],
        "````md\n# A\n```sh\nls\n```\n````",
    ),
    "a fence no longer than those in the file": (
        [user("Fix this.\n```md\n# A\n```sh\nls\n```\nrest\n```\nThanks")],
        "```md\n# A\n```sh\nls\n```\nrest\n```",
    ),
    "the largest of several fences": ([user(f"As in\n```\nx: int\n```\ntype this:\n{FENCED}\n")], FENCED),
    "a fence with CRLF": (
        [user(f"Add types.\r\n{FENCED}\r\n".replace("\r\n", "\n").replace("\n", "\r\n"))],
        FENCED.replace("\n", "\r\n"),
    ),
    "the answer's newer version": (
        [user(f"Add types.\n{FENCED}"), assistant(f"Sure:\n```python\n# typed\n{CODE}```\n"), user("Now add docs.")],
        f"```python\n# typed\n{CODE}```",
    ),
    "tags": (
        [user(f'Add types.\n<file path="a.py">\n{CODE}</file>\nAnswer likewise.')],
        f'<file path="a.py">\n{CODE}</file>',
    ),
    "the largest of several elements, with others inside": (
        [user(f"<note>\nx\n</note>\n<file>\n<p>\n{CODE}</p>\n</file>\n</file>\n<open>\n")],
        f"<file>\n<p>\n{CODE}</p>\n</file>",
    ),
    "a text pasted behind what to do": (
        [system("You edit."), user(f"Please fix this file. Answer with all of it.\n\n{CODE * 3}")],
        (CODE * 3).removesuffix("\n"),
    ),
    "a text pasted before what to do": (
        [user(f"{CODE * 3}\nAdd types to it.")],
        (CODE * 3).removesuffix("\n"),
    ),
    "a text pasted between two paragraphs": (
        [user(f"Please fix this:\n\n{CODE * 3}\n\nDo not\nexplain.\n")],
        (CODE * 3).removesuffix("\n"),
    ),
    "a traceback about an earlier file": (
        [user(f"Add types.\n```python\n{CODE * 4}```"), user("It fails:\n```\nTypeError: x\n```\n")],
        f"```python\n{CODE * 4}```",
    ),
}


@pytest.mark.parametrize("name", RAW)
def test_plain_prompts_of_clients_are_recognized(name: str) -> None:
    prompt, answer = RAW[name]
    layout = layout_of_text(prompt)
    assert expected(layout) == answer
    assert shown(layout, [user(prompt)]).replace("<|user_cursor_is_here|>", "")


@pytest.mark.parametrize("name", CHATS)
def test_conversations_of_clients_are_recognized(name: str) -> None:
    messages, answer = CHATS[name]
    assert expected(layout_of(messages)) == answer


@pytest.mark.parametrize("name", CHATS)
def test_the_passage_is_the_text_but_for_cursors(name: str) -> None:
    messages, _ = CHATS[name]
    layout = layout_of(messages)
    assert layout is not None
    bare = shown(layout, messages)
    for cursor in ("<|user_cursor_is_here|>", "<|cursor|>"):
        bare = bare.replace(cursor, "")
    assert bare == layout.text != ""


@pytest.mark.parametrize(
    "prompt",
    [
        "def add(a, b):\n    return",
        f"# Notes\n\n{FENCED}\n\nThis module shows how",
        f"<|fim_prefix|># Notes\n{FENCED}\n\n<|fim_suffix|>\n<|fim_middle|>",
        f"<fim_prefix>```\n{CODE}```\n<fim_suffix>x<fim_middle>",
        "<<<<<<< CURRENT\nx = 1\n=======\ny = 2\n>>>>>>> other\n",
        "<|editable_region_start|>\nx = 1\n",
        "<|editable_region_end|>\nx\n<|editable_region_start|>\n",
        chatml(user("<|file_sep|>current/a.py\nx = 1\n")),
        "",
    ],
)
def test_plain_prompts_that_ask_for_no_edit_tell_nothing(prompt: str) -> None:
    assert layout_of_text(prompt) is None


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [user("What is a monad?")],
        [user("Use ```x``` inline, or ~~~")],
        [user("Open ended:\n```python\nx = 1\n")],
        [user("Empty:\n```\n\n```\n")],
        [system("Summarize."), user("A long report.\n\nIts second paragraph.")],
        [user("One.\n\n" * 20)],
        [user("x = 1\n" * 20)],
        [user("Fix this.\n\n" + "x = 1\n" * 5)],
        [user("<b>x</b>\n<i>\n\n</i>\n</u>\n<u>\n")],
        [user("<code>a</code> and then <update>")],
        [user("original code:\nx = 1")],
        [user("I have *added these files to the chat*, but there are none.")],
    ],
)
def test_conversations_without_a_text_to_edit_tell_nothing(messages: list[dict[str, str]]) -> None:
    assert layout_of(messages) is None


@pytest.mark.parametrize("build", [zeta_1, zeta_2, sweep, tabby, mercury, instinct])
def test_an_empty_region_is_still_the_one(build: object) -> None:
    """What comes after an empty region is known, and no other part of the prompt is taken for it."""
    layout = layout_of_text(build(""))  # type: ignore[operator]  # parametrized functions
    assert layout is not None
    assert layout.text.strip() == ""


@pytest.mark.parametrize("build", [zeta_1, zeta_2, sweep, tabby, mercury, instinct, vim_selection, vscode_edit])
def test_line_ends_of_any_kind_are_kept(build: object) -> None:
    """A region with CRLF is the same region."""
    text = build(LINES)  # type: ignore[operator]  # parametrized functions
    unix, dos = layout_of_text(text), layout_of_text(text.replace("\n", "\r\n"))
    assert unix is not None
    assert dos is not None
    assert dos.text == unix.text.replace("\n", "\r\n")


def test_content_in_parts_counts_like_one_text() -> None:
    """A passage counts the letters of the parts joined by line breaks, as the template does."""
    message = {"role": "user", "content": [{"type": "text", "text": "Edit."}, {"type": "text", "text": FENCED}]}
    assert layout_of([message]) == Layout(
        Passage(0, len("Edit.\n```python\n"), len(f"Edit.\n{FENCED}") - 3), CODE, "```python\n", "```"
    )


MARKS = [
    "```", "````", "~~~", "```py\n", "\n", "\r\n", "x = 1", " ", "<code>", "</code>", "<update>", "<|cursor|>",
    "<|editable_region_start|>\n", "<|editable_region_end|>", "<<<<<<< CURRENT\n", "=======\n", "<[fim-middle]>",
    "<|marker_1|>", "<|file_sep|>current/a\n", "\n<|file_sep|>updated/", "<|code_to_edit|>\n", "<|/code_to_edit|>",
    "<|current_version|>\n", "<|next_version|>", "--- SELECTION   ---\n", "\n--- SUFFIX      ---", "[/INST]",
    "\noriginal code:\n", "\n\nmodified code:", "ORIGINAL CODE:\n```\n", "\n```\n\nSUGGESTED EDIT:",
    "code to rewrite:\n", "*added these files to the chat*", "<|im_end|>", "assistant\n", "no markdown", "é✅",
]  # fmt: skip
texts = st.lists(st.sampled_from(MARKS), max_size=14).map("".join) | st.text(max_size=30)
roles = st.sampled_from(["system", "user", "assistant"])


@settings(max_examples=300)
@given(st.lists(st.builds(lambda role, content: {"role": role, "content": content}, roles, texts), max_size=4))
def test_a_passage_lies_in_its_message_whatever_the_messages(messages: list[dict[str, str]]) -> None:
    """No conversation makes a recognizer fail, and a passage is a part of its message, equal to the text but for
    cursors."""
    layout = layout_of(messages)
    if layout is not None:
        content, passage = messages[layout.passage.message]["content"], layout.passage
        assert 0 <= passage.start <= passage.end <= len(content)
        assert content[passage.start : passage.end].replace("<|cursor|>", "") == layout.text.replace("<|cursor|>", "")


@settings(max_examples=300)
@given(texts)
def test_a_passage_lies_in_its_prompt_whatever_the_prompt(prompt: str) -> None:
    layout = layout_of_text(prompt)
    if layout is not None:
        assert layout.passage.message == 0
        assert 0 <= layout.passage.start <= layout.passage.end <= len(prompt)


@pytest.mark.parametrize(
    "unit", [*MARKS, "<|a", "not ", "<code>\n", "</code> \n", "```\n", "```py\n", "\n\n", "[INST]"]
)
def test_endless_repetition_takes_no_endless_time(unit: str) -> None:
    """Looking through 200,000 characters of one mark after another reads each a few times at most."""
    text = unit * (200_000 // len(unit))
    layout_of([user(text), assistant(text)])
    layout_of_text(f"{text}\nassistant\n")

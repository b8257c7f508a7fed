"""Which text of a prompt its answer is expected to follow, told by the forms in which clients lay out prompts.

Editors send no prediction, but each has its way of showing the text to be edited: between marks of its own, or in
a fenced block. One small recognizer knows one form; the first that finds its own decides. A wrong guess never
changes an answer, it only costs speed, so a form is known by little: its marks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from lookup_spec.text.fences import Block, blocks
from lookup_spec.text.messages import Message, Passage, content_of

_CURSOR = re.compile(r"<\|(?:user_cursor_is_here|user_cursor|cursor)\|>")
# Control tokens of chat templates, as they stand in a prompt that a client has rendered itself.
_CONTROL = re.compile(r"<[|｜][^<>\n]{1,40}[|｜]>|</?s>|<(?:start|end)_of_turn>|\[/?INST\]")
# Prompts that call for an answer, rather than for the continuation of a document, end like this.
_CALL = re.compile(
    r"(?i)(?:assistant|model|inst|response|answer|output|code|file|editing)(?:<[|｜][^<>\n]{1,40}[|｜]>|\W){0,8}\Z"
)
_INFILLING = re.compile(r"(?i)(?:fim.?(?:middle|end)|<mid>|\[middle\])\W{0,3}\Z")
_UNFENCED = re.compile(
    r"(?i)\b(?:no|not|without|don't|never)\b[^.\n]{0,40}(?:\bfence|\bcode ?block|\bmarkdown\b|\bbackticks|```)"
)
_LABEL = re.compile(r"(?i)\b(?:rewrite|original|before|current)\b[^\n]*:\s*\Z")
_FIRST_WORD = re.compile(r"(\S+)[^\r\n]*")
_LISTING = "*added these files to the chat*"
_SNIPPET = 4  # a block this many times smaller than an earlier one is about it, not the text to edit
_TAIL = 200


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a text stands in messages, and the answer that is expected if it is not to change.

    Attributes:
        passage: the text, as it stands in the messages.
        text: the same as the answer would have it, without marks of the cursor.
        opening: what the answer begins with before it, like a fence.
        closing: what the answer ends with behind it.
    """

    passage: Passage
    text: str
    opening: str = ""
    closing: str = ""


def layout_of(messages: Sequence[Message]) -> Layout | None:
    """The text that the answer to a conversation is expected to follow; None if nothing tells.

    Args:
        messages: the conversation; a last message of the assistant is the beginning of the answer.
    """
    return _first(_Prompt(tuple(map(content_of, messages)), tuple(str(one.get("role")) for one in messages)))


def layout_of_text(prompt: str) -> Layout | None:
    """The same for a prompt without messages: a form of its own, or a conversation rendered by the client.

    The passage counts the prompt as message 0.
    """
    return _first(_Prompt((prompt,)))


@dataclass(frozen=True, slots=True)
class _Prompt:
    texts: tuple[str, ...]
    roles: tuple[str, ...] | None = None  # None: it is no conversation

    def questions(self) -> Iterator[tuple[int, str]]:
        """The texts that are not the assistant's, last first, with their numbers."""
        for index in reversed(range(len(self.texts))):
            if self.roles is None or self.roles[index] != "assistant":
                yield index, self.texts[index]

    def begun(self) -> str:
        """What the answer goes on from, perhaps with more before it."""
        return self.texts[-1] if self.roles is None or self.roles[-1:] == ("assistant",) else ""

    def opening(self, line: str) -> str:
        """What is left to write of a line that opens a fence, which the prompt may have done already."""
        begun = self.begun()
        if not _is_open(begun):
            return line
        return "" if begun.endswith("\n") else "\n"


@dataclass(frozen=True, slots=True)
class _Region:
    """A form that puts the text between two marks of its own.

    Attributes:
        before: the mark that begins it, and all that is not the text yet.
        after: the mark that ends it, likewise.
        opening: what the answer begins with before the text; a fence.
        closing: what follows it in the answer.
    """

    before: re.Pattern[str]
    after: re.Pattern[str]
    opening: str = ""
    closing: str = ""

    def __call__(self, prompt: _Prompt) -> Layout | None:
        for index, text in prompt.questions():
            before = self.before.search(text)
            ends = [found.start() for found in self.after.finditer(text, before.end())] if before else []
            if before and ends:
                passage = Passage(index, before.end(), ends[-1])
                inside = _CURSOR.sub("", text[before.end() : ends[-1]])
                opening = prompt.opening(self.opening) if self.opening else ""
                return Layout(passage, inside, opening, self.closing)
        return None


def _region(before: str, after: str, opening: str = "", closing: str = "") -> _Region:
    return _Region(re.compile(before), re.compile(after), opening, closing)


def _listing(prompt: _Prompt) -> Layout | None:
    """Whole files, each a line with its path and a fenced block: the answer has the same form."""
    for index, text in prompt.questions():
        start = text.find(_LISTING)
        files = [block for block in _blocks(text[start:]) if block.closing] if start >= 0 else []
        if files:
            first = text.rfind("\n", 0, max(0, start + files[0].line - 1)) + 1
            end = start + files[-1].end + len(files[-1].closing)
            return Layout(Passage(index, first, end), text[first:end])
    return None


def _fenced(prompt: _Prompt) -> Layout | None:
    """A fenced block: the largest of the last message that has one, whoever wrote it."""
    if prompt.roles is None and not _calls_for_an_answer(prompt.texts[0]):
        return None
    best: tuple[int, Block] | None = None
    for index in reversed(range(len(prompt.texts))):
        block = _text_to_edit(prompt.texts[index])
        if block is not None and (best is None or _size(block) > _SNIPPET * _size(best[1])):
            best = index, block
    if best is None:
        return None
    index, block = best
    text = prompt.texts[index]
    layout = Layout(Passage(index, block.start, block.end), text[block.start : block.end])
    around = (*prompt.texts[:index], text[: block.line], text[block.end :], *prompt.texts[index + 1 :])
    if any(map(_UNFENCED.search, around)):
        return layout
    line = _FIRST_WORD.sub(r"\1", text[block.line : block.start].lstrip(), count=1)
    return replace(layout, opening=prompt.opening(line), closing=block.closing)


def _text_to_edit(text: str) -> Block | None:
    """The block that a message calls the one to edit, else its largest."""
    found = [block for block in _blocks(text) if block.closing and text[block.start : block.end].strip()]
    labelled = [block for block in found if _LABEL.search(text[max(0, block.line - _TAIL) : block.line])]
    return max(labelled or found, key=_size, default=None)


def _size(block: Block) -> int:
    return block.end - block.start


def _is_open(text: str) -> bool:
    """Whether a text ends inside a block."""
    return any(not block.closing for block in _blocks(text))


def _blocks(text: str) -> Iterator[Block]:
    # A fence may stand right beside a control token: for finding fences, these are line breaks.
    return blocks(_CONTROL.sub(lambda found: "\n" * len(found[0]), text))


def _calls_for_an_answer(prompt: str) -> bool:
    tail = prompt[-_TAIL:]
    return not _INFILLING.search(tail) and (bool(_CALL.search(tail)) or _is_open(prompt))


_RECOGNIZERS: tuple[Callable[[_Prompt], Layout | None], ...] = (
    # Zed's Zeta 1, and Continue's Instinct
    _region(
        r"<\|editable_region_start\|>\r?\n",
        r"(?m)(?:\r?\n)?^<\|editable_region_end\|>",
        closing="\n<|editable_region_end|>",
    ),
    # Zed's Zeta 2 and 2.1; of the latter's numbered marks the answer repeats two
    _region(r"<<<<<<< CURRENT\r?\n", r"=======\r?\n<\[fim-middle\]>", closing=">>>>>>> UPDATED\n"),
    _region(r"(?=<\|marker_1\|>)", r"(?:\r?\n)?<\[fim-middle\]>"),
    # Sweep
    _region(r"<\|file_sep\|>current/[^\n]*\n", r"\r?\n<\|file_sep\|>updated/"),
    # Mercury
    _region(r"<\|code_to_edit\|>\r?\n", r"(?m)(?:\r?\n)?^<\|/code_to_edit\|>", opening="```\n", closing="\n```"),
    # Tabby's next edit
    _region(r"<\|current_version\|>\r?\n", r"(?m)(?:\r?\n)?^<\|next_version\|>", closing="\n"),
    # Morph, and who speaks its form; the update that follows is looked up like any other text
    _region(r"<code>(?:\r?\n)?", r"(?:\r?\n)?</code>\s*<update>"),
    # llama.vim
    _region(r"(?m)^--- SELECTION   -+\r?\n", r"\r?\n--- SUFFIX      -"),
    # llama.vscode
    _region(r"\noriginal code:\r?\n", r"\r?\n\r?\nmodified code:"),
    # Continue, applying a suggestion
    _region(r"ORIGINAL CODE:\r?\n```[^\n]*\n", r"\r?\n```\s+SUGGESTED EDIT:", opening="```\n", closing="\n```"),
    # aider, whole files
    _listing,
    # anything else that fences the text
    _fenced,
)


def _first(prompt: _Prompt) -> Layout | None:
    found = (recognize(prompt) for recognize in _RECOGNIZERS)
    return next((layout for layout in found if layout is not None), None)

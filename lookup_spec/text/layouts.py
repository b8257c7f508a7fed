"""Which text of a prompt its answer is expected to follow, told by the forms in which clients lay out prompts.

Editors send no prediction, but each has its way of showing the text to be edited: between marks of its own, or in
a fenced block. One small recognizer knows one form; the first that finds its own decides. A wrong guess never
changes an answer, it only costs speed, so a form is known by little: its marks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lookup_spec.text.conversation import Conversation, Layout, fenced_blocks
from lookup_spec.text.documents import fenced, pasted, tagged
from lookup_spec.text.messages import Message, Passage

_CURSOR = re.compile(r"<\|(?:user_cursor_is_here|user_cursor|cursor)\|>")
_LISTING = "*added these files to the chat*"


def layout_of(messages: Sequence[Message]) -> Layout | None:
    """The text that the answer to a conversation is expected to follow; None if nothing tells.

    Args:
        messages: the conversation; a last message of the assistant is the beginning of the answer.
    """
    return _first(Conversation.of(messages))


def layout_of_text(prompt: str) -> Layout | None:
    """The same for a prompt without messages: a form of its own, or a conversation rendered by the client.

    The passage counts the prompt as message 0.
    """
    return _first(Conversation((prompt,)))


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

    def __call__(self, prompt: Conversation) -> Layout | None:
        for index, text in prompt.questions():
            before = self.before.search(text)
            ends = [found.start() for found in self.after.finditer(text, before.end())] if before else []
            if before and ends:
                passage = Passage(index, before.end(), ends[-1])
                inside = _CURSOR.sub("", text[before.end() : ends[-1]])
                opening = prompt.rest_of_opening(self.opening) if self.opening else ""
                return Layout(passage, inside, opening, self.closing)
        return None


def _region(before: str, after: str, opening: str = "", closing: str = "") -> _Region:
    return _Region(re.compile(before), re.compile(after), opening, closing)


def _listing(prompt: Conversation) -> Layout | None:
    """Whole files, each a line with its path and a fenced block: the answer has the same form."""
    for index, text in prompt.questions():
        start = text.find(_LISTING)
        files = [block for block in fenced_blocks(text[start:]) if block.closing] if start >= 0 else []
        if files:
            first = text.rfind("\n", 0, max(0, start + files[0].line - 1)) + 1
            end = start + files[-1].end + len(files[-1].closing)
            return Layout(Passage(index, first, end), text[first:end])
    return None


_RECOGNIZERS: tuple[Callable[[Conversation], Layout | None], ...] = (
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
    # anything else
    fenced,
    tagged,
    pasted,
)


def _first(prompt: Conversation) -> Layout | None:
    found = (recognize(prompt) for recognize in _RECOGNIZERS)
    return next((layout for layout in found if layout is not None), None)

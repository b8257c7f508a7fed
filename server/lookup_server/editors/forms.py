"""Edits as clients of other services write them into a message, for models that were trained on that form.

Any model can make these edits if they are put to it as ours are, so they are read rather than passed on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lookup_spec.text.edit_task import File, Lines, NextEdit, Task, Update
from lookup_spec.text.lines import SourceText

_MORPH = re.compile(
    r"\s*(?:<(instructions?)>(?P<text>.*?)</\1>\s*)?<code>(?P<code>.*)</code>\s*<update>(?P<update>.*)</update>\s*",
    re.DOTALL,
)
_APPLY = re.compile(
    r"\s*<\|original_code\|>\r?\n(?P<code>.*)\r?\n<\|/original_code\|>\s*"
    r"<\|update_snippet\|>\r?\n(?P<update>.*)\r?\n<\|/update_snippet\|>\s*",
    re.DOTALL,
)
_FILE = re.compile(
    r"<\|current_file_content\|>\r?\n(?:current_file_path: (?P<path>[^\r\n]*)\r?\n)?"
    r"(?P<above>.*)<\|code_to_edit\|>\r?\n(?P<region>.*?)(?P<end>\r?\n)?<\|/code_to_edit\|>(?:\r?\n)?(?P<below>.*)"
    r"<\|/current_file_content\|>",
    re.DOTALL,
)
_HISTORY = re.compile(r"<\|edit_diff_history\|>\s*(.*?)\s*<\|/edit_diff_history\|>", re.DOTALL)
_SNIPPET = re.compile(
    r"<\|recently_viewed_code_snippet\|>\r?\n(?:code_snippet_file_path: ([^\r\n]*)\r?\n)?(.*?)"
    r"<\|/recently_viewed_code_snippet\|>",
    re.DOTALL,
)
_CURSOR = "<|cursor|>"


@dataclass(frozen=True, slots=True)
class Asked:
    """An edit that was asked for in another form.

    Attributes:
        text: the document.
        task: what to do.
        path: of the document, if it is known.
        lines: the only ones that may change, and the ones to answer with; None for all.
        others: further files to go by.
        fenced: the answer is put between fences, or is the word None where nothing is to be changed.
    """

    text: str
    task: Task
    path: str = ""
    lines: Lines | None = None
    others: tuple[File, ...] = ()
    fenced: bool = False


def morph_apply(message: str) -> Asked | None:
    """A message of Morph's clients: a file and an update to merge in."""
    found = _MORPH.fullmatch(message)
    if found is None or not found["update"].strip():
        return None
    return Asked(_inside(found["code"]), Update(_inside(found["update"]), (found["text"] or "").strip()))


def mercury_apply(message: str) -> Asked | None:
    """The same for Mercury."""
    found = _APPLY.fullmatch(message)
    if found is None or not found["update"].strip():
        return None
    return Asked(found["code"], Update(found["update"]))


def mercury_edit(message: str) -> Asked | None:
    """A message of Mercury's clients that asks for the next edit of a region."""
    found = _FILE.search(message)
    if found is None:
        return None
    region = found["region"]
    cursor = _place(found["above"], region)
    kept = region.replace(_CURSOR, "") + (found["end"] or "")
    first = found["above"].count("\n")
    history = _HISTORY.search(message)
    diffs = (history[1],) if history is not None and history[1] else ()
    others = tuple(File(SourceText.from_text(one[2]).lines, one[1] or "") for one in _SNIPPET.finditer(message))
    return Asked(
        found["above"] + kept + found["below"],
        NextEdit(diffs, cursor),
        found["path"] or "",
        (first, first + len(SourceText.from_text(kept).lines)),
        others,
        fenced=True,
    )


def _place(above: str, region: str) -> tuple[int, int] | None:
    """The line and column of the cursor, if the region has it."""
    before, mark, _ = region.partition(_CURSOR)
    if not mark:
        return None
    text = above + before
    return text.count("\n"), len(text) - (text.rfind("\n") + 1)


def _inside(text: str) -> str:
    """What stands between two marks: some clients put each on a line of its own."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == "\n" else text

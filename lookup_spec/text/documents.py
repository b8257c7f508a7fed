"""Documents in prompts of no known client: fenced, between tags, or just pasted."""

from __future__ import annotations

import re
from bisect import bisect_left
from operator import itemgetter

from lookup_spec.text.conversation import Conversation, Layout, fenced_blocks, turns
from lookup_spec.text.fences import Block
from lookup_spec.text.messages import Passage

_UNFENCED = re.compile(
    r"(?i)\b(?:no|not|without|don't|never)\b[^.\n]{0,40}(?:\bfence|\bcode ?block|\bmarkdown\b|\bbackticks|```)"
)
_LABEL = re.compile(r"(?i)\b(?:rewrite|original|before|current)\b[^\n]*:\s*\Z")
_LABEL_LENGTH = 200
_FIRST_WORD = re.compile(r"(\S+)[^\r\n]*")
_SNIPPET = 4  # a block this many times smaller than an earlier one is about it, not the text to edit
_START_TAG = re.compile(r"(?m)^<([A-Za-z][\w.:-]*)(?:[ \t][^<>\n]*)?>[ \t]*\r?\n")
_END_TAG = re.compile(r"(?m)^</([A-Za-z][\w.:-]*)>")
_BLANK = re.compile(r"\n[ \t\r]*\n")
_PROSE = re.compile(r"[A-Z][^\n]* [^\n]*(?:\n[^\n]+){0,2}[.:!?]\Z")
_LONG = 8  # lines: shorter texts between paragraphs are paragraphs


def fenced(prompt: Conversation) -> Layout | None:
    """A fenced block: the largest of the last message that has one, whoever wrote it."""
    if not prompt.calls_for_an_answer:
        return None
    best: tuple[int, Block] | None = None
    for index in reversed(range(len(prompt.texts))):
        block = _block_to_edit(prompt.texts[index])
        if block is not None and (best is None or _size(block) > _SNIPPET * _size(best[1])):
            best = index, block
    if best is None:
        return None
    index, block = best
    text = prompt.texts[index]
    inside = text[block.start : block.end]
    around = (*prompt.texts[:index], text[: block.line], text[block.end :], *prompt.texts[index + 1 :])
    if any(map(_UNFENCED.search, around)):
        inside = inside.rstrip("\r\n")
        return Layout(Passage(index, block.start, block.start + len(inside)), inside)
    line = _FIRST_WORD.sub(r"\1", text[block.line : block.start].lstrip(), count=1)
    return Layout(Passage(index, block.start, block.end), inside, prompt.rest_of_opening(line), block.closing)


def _block_to_edit(text: str) -> Block | None:
    """The block that a message calls the one to edit, else its largest."""
    found = [block for block in fenced_blocks(text) if block.closing and text[block.start : block.end].strip()]
    labelled = [block for block in found if _LABEL.search(text[max(0, block.line - _LABEL_LENGTH) : block.line])]
    return max(labelled or found, key=_size, default=None)


def _size(block: Block) -> int:
    return block.end - block.start


def tagged(prompt: Conversation) -> Layout | None:
    """An element whose tags have lines of their own: the largest of the last message that has one."""
    if not prompt.calls_for_an_answer:
        return None
    for index, text in prompt.questions():
        ends: dict[str, list[int]] = {}
        for found in _END_TAG.finditer(text):
            ends.setdefault(found[1], []).append(found.start())
        elements = [
            (places[at] - tag.end(), tag, places[at])
            for tag in _START_TAG.finditer(text)
            if (at := bisect_left(places := ends.get(tag[1], []), tag.end())) < len(places)
        ]
        size, tag, end = max(elements, key=itemgetter(0), default=(0, None, 0))
        if tag is not None and text[end - size : end].strip():
            return Layout(Passage(index, end - size, end), text[end - size : end], tag[0], f"</{tag[1]}>")
    return None


def pasted(prompt: Conversation) -> Layout | None:
    """The last question, if it is long, without a paragraph at its start or end that tells what to do."""
    if not prompt.calls_for_an_answer:
        return None
    index, text = next(prompt.questions(), (0, ""))
    whole = [(0, len(text))] if prompt.roles is not None else turns(text)
    start, end = max(whole, key=lambda turn: turn[1] - turn[0])
    cuts = [start, *(found.start() for found in _BLANK.finditer(text, start, end)), end]
    if _PROSE.match(text[start : cuts[1]].strip()):
        start = cuts[1]
    if _PROSE.match(text[cuts[-2] : end].strip()):
        end = max(start, cuts[-2])
    inside = text[start:end].strip("\r\n")
    if (start, end) == (cuts[0], cuts[-1]) or inside.count("\n") < _LONG:
        return None
    start = text.index(inside, start)
    return Layout(Passage(index, start, start + len(inside)), inside)

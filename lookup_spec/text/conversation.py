"""A prompt as a recognizer of layouts sees it, and what it may find there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lookup_spec.text.fences import Block, blocks
from lookup_spec.text.messages import Message, Passage, content_of

# Control tokens of chat templates, as they stand in a prompt that a client has rendered itself.
_CONTROL = re.compile(r"<[|｜][^<>\n]{1,40}[|｜]>|</?s>|<(?:start|end)_of_turn>|\[/?INST\]")
_ROLE = re.compile(r"(?:system|user|assistant|model)?\s*")
# Prompts that call for an answer, rather than for the continuation of a document, end like this.
_CALL = re.compile(
    r"(?i)(?:assistant|model|inst|response|answer|output|code|file|editing)(?:<[|｜][^<>\n]{1,40}[|｜]>|\W){0,8}\Z"
)
_INFILLING = re.compile(r"(?i)(?:fim.?(?:middle|end)|<mid>|\[middle\])\W{0,3}\Z")
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


@dataclass(frozen=True, slots=True)
class Conversation:
    """The texts of a prompt.

    Attributes:
        texts: one for each message, or the prompt.
        roles: of the messages; None if the prompt has none, for the client has rendered it itself.
    """

    texts: tuple[str, ...]
    roles: tuple[str, ...] | None = None

    @classmethod
    def of(cls, messages: Sequence[Message]) -> Conversation:
        """A chat; a last message of the assistant is the beginning of the answer."""
        return cls(tuple(map(content_of, messages)), tuple(str(message.get("role")) for message in messages))

    def questions(self) -> Iterator[tuple[int, str]]:
        """The texts that are not the assistant's, last first, with their numbers."""
        for index in reversed(range(len(self.texts))):
            if self.roles is None or self.roles[index] != "assistant":
                yield index, self.texts[index]

    @property
    def calls_for_an_answer(self) -> bool:
        """Whether this is more than a document to be continued or filled in."""
        if self.roles is not None:
            return True
        tail = self.texts[0][-_TAIL:]
        return not _INFILLING.search(tail) and (bool(_CALL.search(tail)) or _is_open(self.texts[0]))

    def rest_of_opening(self, line: str) -> str:
        """What the answer has still to write of a line that opens a fence, which the prompt may have begun."""
        begun = self.texts[-1] if self.roles is None or self.roles[-1:] == ("assistant",) else ""
        if not _is_open(begun):
            return line
        return "" if begun.endswith("\n") else "\n"


def fenced_blocks(text: str) -> Iterator[Block]:
    """The blocks of a message or a rendered prompt, where a fence may stand right beside a control token."""
    return blocks(_CONTROL.sub(lambda found: "\n" * len(found[0]), text))


def turns(rendered: str) -> list[tuple[int, int]]:
    """Where the stretches between control tokens stand in a rendered prompt, without the names of roles."""
    edges = [0, *(edge for found in _CONTROL.finditer(rendered) for edge in found.span()), len(rendered)]
    roles = [_ROLE.match(rendered, start, end) for start, end in zip(edges[::2], edges[1::2], strict=True)]
    return [(role.end(), role.endpos) for role in roles if role]


def _is_open(text: str) -> bool:
    return any(not block.closing for block in fenced_blocks(text))

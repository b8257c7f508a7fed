"""The question that asks a model to rewrite a whole file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from lookup_spec.errors import EditError
from lookup_spec.text.answer import AnswerReader
from lookup_spec.text.fences import fence_for
from lookup_spec.text.languages import language_of
from lookup_spec.text.messages import Passage
from lookup_spec.text.template import ChatTemplate, EncodedPrompt

SYSTEM = "You are a careful code editor."
REQUEST = "Return the whole edited file."
_LANGUAGES = {"kt": "kotlin", "md": "markdown", "yml": "yaml"}
_DOCUMENTS = ("markdown", "mdx", "rst", "txt", "adoc", "org")


@dataclass(frozen=True, slots=True)
class EditPrompt:
    """A whole-file edit, as messages.

    The stable part stands first (system line, file), the instruction last, so that a next request about the
    same file can reuse what was computed for this one. The last message opens the answer's fence: the answer
    then begins with the file's first line, without talk, and ends with the closing fence.

    Attributes:
        messages: system, user, and the begun answer of the assistant.
        base: the file's text (LF line ends).
        fence: around the file, in the question and in the answer.
        passage: where the file stands in the messages.
    """

    messages: tuple[dict[str, str], ...]
    base: str
    fence: str
    passage: Passage

    def encode(self, template: ChatTemplate) -> EncodedPrompt:
        """Token ids, with the span of the file as the only span; the messages' texts alone, one below the
        other, if the model has no chat template."""
        return template.encode(
            self.messages,
            passages=(self.passage,),
            continue_final_message=True,
            plain=template.problem is not None,
        )

    def unchanged(self) -> str:
        """The answer, up to its end token, if nothing were to change: what to expect before anything is known."""
        end = "" if self.base.endswith("\n") or not self.base else "\n"
        return f"{self.base}{end}{self.fence}"

    def reader(self) -> AnswerReader:
        """What takes the edited file out of the answer."""
        return AnswerReader(self.base, self.fence, opened=True)


def edit_prompt(base: str, instruction: str, path: str = "") -> EditPrompt:
    """Asks for a whole file to be rewritten.

    Args:
        base: the file's text (LF line ends, no byte-order mark).
        instruction: what to change.
        path: the file's name, shown to the model and giving the language; may be empty.

    Raises:
        EditError: there is no instruction.
    """
    if not instruction.strip():
        raise EditError("The instruction is empty; say what to change.")
    language = _language(path)
    fence = fence_for(base, minimum=4 if language in _DOCUMENTS else 3)
    opening = f"{fence}{language}\n"
    name = " ".join(path.split())
    head = f"File {name}:\n{opening}" if name else f"File:\n{opening}"
    end = "" if base.endswith("\n") or not base else "\n"
    question = f"{head}{base}{end}{fence}\n\n{instruction.strip()}\n\n{REQUEST}"
    messages = (
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": question},
        {"role": "assistant", "content": opening},
    )
    return EditPrompt(messages, base, fence, Passage(1, len(head), len(head) + len(base)))


def _language(path: str) -> str:
    """What to call the file's language on a fence; empty if the name does not tell."""
    language = language_of(path)
    if language is not None:
        return language.name
    suffix = PurePosixPath(path.replace("\\", "/")).suffix[1:].lower()
    return _LANGUAGES.get(suffix, suffix if re.fullmatch(r"[a-z0-9+#]{1,12}", suffix) else "")

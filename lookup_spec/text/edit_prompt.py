"""The question that asks a model to rewrite a file, or some lines of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lookup_spec.errors import EditError
from lookup_spec.text.answer import AnswerReader
from lookup_spec.text.edit_task import File, Instruction, Lines, NextEdit, Task, Update
from lookup_spec.text.messages import Passage
from lookup_spec.text.template import ChatTemplate, EncodedPrompt

SYSTEM = "You are a careful code editor."
REQUEST = "Return the whole edited file."
REQUEST_LINES = "Return these lines, edited, and nothing else."
_UPDATE = (
    'Merge this update into the file. Where it says "... existing code ...", the code of the file stays as it is; its '
    "other lines are those of the merged file"
)
_NEXT = "Make the change to these lines that most likely comes next; if there is none, repeat them unchanged."


@dataclass(frozen=True, slots=True)
class EditPrompt:
    """An edit, as messages.

    The stable part stands first (system line, other files, the file), what is asked last, so that a next request about
    the same file can reuse what was computed for this one. The last message opens the answer's fence: the answer then
    begins with the first line, without talk, and ends with the closing fence.

    Attributes:
        messages: system, user, and the begun answer of the assistant.
        base: the text that the answer replaces (LF line ends): the file, or the lines to edit.
        fence: around the answer.
        passage: where ``base`` stands in the messages.
    """

    messages: tuple[dict[str, str], ...]
    base: str
    fence: str
    passage: Passage

    def encode(self, template: ChatTemplate) -> EncodedPrompt:
        """Token ids, with the span of ``base`` as the only span; the messages' texts alone, one below the other, if
        the model has no chat template."""
        return template.encode(
            self.messages,
            passages=(self.passage,),
            continue_final_message=True,
            plain=template.problem is not None,
        )

    def unchanged(self) -> str:
        """The answer, up to its end token, if nothing were to change: what to expect before anything is known."""
        return _tail(self.base, self.fence).rstrip("\n")

    def reader(self) -> AnswerReader:
        """What takes the edited text out of the answer."""
        return AnswerReader(self.base, self.fence, opened=True)


def edit_prompt(
    file: File, task: Task, *, lines: Lines | None = None, shown: Lines | None = None, others: Sequence[File] = ()
) -> EditPrompt:
    """Asks for a file to be rewritten, or only some lines of it.

    Lines to edit are repeated behind the file rather than marked in it: so the file stays the same text from request
    to request, and models copy best what stands right before the answer.

    Args:
        file: what is edited.
        task: what to do.
        lines: the lines to edit; None for the whole file.
        shown: the lines that the model gets to see, those to edit among them; None for the whole file.
        others: further files to go by.

    Raises:
        EditError: there is nothing to do.
    """
    asked = _asked(task, file)
    first, last = shown or (0, len(file.lines))
    part = File(file.lines[first:last], file.path, file.language)
    fence = part.fence()
    title = "File" if shown is None else f"Lines {first + 1} to {last} of file"
    head = "".join(_block("File", other, other.fence()) for other in others) + _block(title, part, fence)
    request = REQUEST
    if lines is not None:
        request = REQUEST_LINES
    if lines is not None and lines != shown:
        part = File(file.lines[slice(*lines)], "", part.tag)
        head += _block(f"Lines {lines[0] + 1} to {lines[1]}, which are to be edited", part, fence)
    base = "".join(part.lines)
    start = len(head) - len(_tail(base, fence))
    outer = file.fence(task.snippet) if isinstance(task, Update) else fence
    messages = (
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": f"{head}{asked}\n\n{request}"},
        {"role": "assistant", "content": f"{outer}{part.tag}\n"},
    )
    return EditPrompt(messages, base, outer, Passage(1, start, start + len(base)))


def _asked(task: Task, file: File) -> str:
    """What to do, in words.

    Raises:
        EditError: it is nothing.
    """
    match task:
        case Instruction(text):
            if not text.strip():
                raise EditError("The instruction is empty; say what to change.")
            return text.strip()
        case Update(snippet, text):
            if not snippet.strip():
                raise EditError("The update is empty; give the changed code.")
            update = File((snippet,), "", file.tag)
            return "\n\n".join(filter(None, (text.strip(), _block(_UPDATE, update, update.fence()).rstrip())))
        case NextEdit(history, cursor):
            changes = File(("\n".join(history),), "", "diff")
            said = [_block("The latest changes, oldest first", changes, changes.fence()).rstrip()] if history else []
            if cursor is not None:
                line, column = cursor
                content = file.lines[line].removesuffix("\n") if line < len(file.lines) else ""
                said.append(f"The cursor is in line {line + 1}, at the bar: {content[:column]}|{content[column:]}")
            return "\n\n".join([*said, _NEXT])


def _block(title: str, file: File, fence: str) -> str:
    name = " ".join(file.path.split())
    heading = f"{title} {name}" if name else title
    return f"{heading}:\n{fence}{file.tag}\n" + _tail("".join(file.lines), fence)


def _tail(text: str, fence: str) -> str:
    """A text in a block, from its start to where the next may follow."""
    end = "" if text.endswith("\n") or not text else "\n"
    return f"{text}{end}{fence}\n\n"

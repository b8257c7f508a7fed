"""What to ask of the model for an edit, and how much of a long file to show it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from lookup_spec.errors import ContextLengthError
from lookup_spec.params import SamplingParams
from lookup_spec.pipeline.engine import Engine
from lookup_spec.propose.prompt import Prompt, Reference, Span
from lookup_spec.text.document import Document
from lookup_spec.text.edit_prompt import EditPrompt, edit_prompt
from lookup_spec.text.edit_task import File, Lines, NextEdit, Task
from lookup_spec.text.lines import SourceText
from lookup_spec.text.syntax import Syntax

# An answer this much longer than what it replaces is a model going round in circles, not an edit.
_GROWTH = 2
_ROOM = 1024
_NEXT_EDIT = (8, 12)  # lines above and below the cursor in which the next edit is sought
_LETTERS_PER_TOKEN = 8  # twice what code and prose have; a file with more letters for each token cannot fit
_LEAST = 256  # letters; a smaller part of a file is not worth asking about


@dataclass(frozen=True, slots=True)
class EditRequest:
    """What to do to which file.

    Attributes:
        source: the file.
        task: what to do.
        path: the file's name, shown to the model.
        params: how to choose tokens; without ``max_tokens``, twice the length of what is edited and 1,024 tokens more.
        speculation: false decodes one token at a time.
        language: of the file; if empty, the name decides.
        lines: the only lines that may change; None for the whole file.
        cursor: the line where the user is; if the whole file does not fit the model, it is about what stands there.
        others: further files to go by, as far as they fit.
    """

    source: SourceText
    task: Task
    path: str = ""
    params: SamplingParams = field(default_factory=SamplingParams)
    speculation: bool = True
    language: str = ""
    lines: Lines | None = None
    cursor: int | None = None
    others: tuple[File, ...] = ()


@dataclass(frozen=True, slots=True)
class EditPlan:
    """An edit, ready to be run.

    Attributes:
        question: what the model is asked.
        prompt: the same as tokens, with the unchanged text as the prediction.
        params: how to choose tokens and when to stop.
        lines: what the answer replaces.
        shown: what the model sees of the file.
        narrowed: not all that was asked for could be edited, or not all of the file shown, for want of room.
        others: how many of the other files the model sees.
        predicted: tokens of the text that the answer replaces.
    """

    question: EditPrompt
    prompt: Prompt
    params: SamplingParams
    lines: Lines
    shown: Lines
    narrowed: bool
    others: int
    predicted: int


@dataclass(frozen=True, slots=True)
class _View:
    lines: Lines | None
    shown: Lines | None
    others: tuple[File, ...] = ()


def plan_edit(engine: Engine, request: EditRequest) -> EditPlan:
    """Asks for the edit with as much of the file and of the others as the model can hold.

    Raises:
        EditError: there is nothing to do.
        ContextLengthError: not even the lines to edit fit.
    """
    file = File(request.source.lines, request.path, request.language)
    size = len(request.source.text) // _LETTERS_PER_TOKEN
    refusal = _too_long(size, size, engine.context_length)
    for view in _views(request, file, engine.context_length):
        question = edit_prompt(file, request.task, lines=view.lines, shown=view.shown, others=view.others)
        if sum(len(message["content"]) for message in question.messages) > engine.context_length * _LETTERS_PER_TOKEN:
            continue
        encoded = question.encode(engine.template)
        spans = tuple(Span(*span, "base") for span in encoded.spans if span is not None)
        expected = engine.prompts.whole_answer(question.unchanged())
        room = engine.context_length - len(encoded.ids)
        if room < len(expected):
            refusal = _too_long(len(encoded.ids), len(expected), engine.context_length)
            continue
        whole = (0, len(file.lines))
        limit = request.params.max_tokens
        return EditPlan(
            question,
            Prompt(encoded.ids, spans, (Reference(expected, "prediction"),)),
            replace(request.params, max_tokens=min(room, _GROWTH * len(expected) + _ROOM) if limit is None else limit),
            lines=view.lines or whole,
            shown=view.shown or whole,
            narrowed=view.shown is not None,
            others=len(view.others),
            predicted=sum(span.end - span.start for span in spans),
        )
    raise refusal


def known_prompt(engine: Engine, request: EditRequest) -> Prompt:
    """The beginning of the prompt, up to the end of the file: the same whatever is to be done to it.

    Raises:
        ContextLengthError: the file does not fit the model.
    """
    prompt = plan_edit(engine, request).prompt
    return Prompt(prompt.ids[: max((span.end for span in prompt.spans), default=len(prompt.ids))])


def _views(request: EditRequest, file: File, context_length: int) -> Iterator[_View]:
    """Ever less to show; also ever less to edit, if it may be less than the whole file."""
    total = len(file.lines)
    lines, cursor = request.lines, None if request.cursor is None else min(request.cursor, total - 1)
    if lines is None and cursor is not None and isinstance(request.task, NextEdit):
        lines = (max(0, cursor - _NEXT_EDIT[0]), min(total, cursor + _NEXT_EDIT[1] + 1))
    lines = None if lines == (0, total) else lines
    if request.others:
        yield _View(lines, None, request.others)
    yield _View(lines, None)
    if total == 0 or (lines is None and cursor is None):
        return
    syntax = Document(request.source.text, file.known_language if lines is None else None).syntax
    size = context_length * _LETTERS_PER_TOKEN // 4
    while size >= _LEAST:
        edited = lines or _enclosing(file.lines, syntax, cursor or 0, size // 4)
        yield _View(edited, _around(file.lines, edited, size))
        size //= 2


def _enclosing(lines: Sequence[str], syntax: Syntax, line: int, size: int) -> Lines:
    """The definition that a line is part of, or what else of its surroundings is up to a size in letters."""
    starts = [0, *accumulate(map(len, lines))]
    found = syntax.enclosing(starts[line], starts[line] + len(lines[line].rstrip("\n")), size)
    if found is None or not syntax.definitions:
        return _around(lines, (line, line + 1), size)
    return bisect_right(starts, found[0]) - 1, bisect_left(starts, found[1])


def _around(file: Sequence[str], lines: Lines, size: int) -> Lines:
    """These lines with others around them, as many above as below, up to a size in letters."""
    start, end = lines
    above = below = (size - sum(map(len, file[start:end]))) // 2
    while start > 0 and len(file[start - 1]) <= above:
        start -= 1
        above -= len(file[start])
    while end < len(file) and len(file[end]) <= below:
        below -= len(file[end])
        end += 1
    return start, end


def _too_long(prompt: int, answer: int, context_length: int) -> ContextLengthError:
    reason = (
        f"The edited text needs about {answer} tokens behind a prompt of {prompt}, but this model holds "
        f"{context_length} in all; edit fewer lines or choose a model with a longer context."
    )
    return ContextLengthError(prompt, context_length, reason)

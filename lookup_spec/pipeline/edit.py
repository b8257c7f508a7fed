"""A whole-file edit, from request to finished file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from lookup_spec.engine.session import FinishReason, Piece
from lookup_spec.errors import EditError
from lookup_spec.params import SamplingParams
from lookup_spec.pipeline.engine import Engine
from lookup_spec.propose.prompt import Prompt, Reference, Span
from lookup_spec.stats import Stats
from lookup_spec.text.edit_prompt import edit_prompt
from lookup_spec.text.lines import SourceText
from lookup_spec.text.progress import LineProgress

# An answer this much longer than the file is a model going round in circles, not an edit.
_GROWTH = 2
_ROOM = 1024


@dataclass(frozen=True, slots=True)
class EditRequest:
    """What to do to which file.

    Attributes:
        source: the file.
        instruction: what to change, in plain words.
        path: the file's name, shown to the model.
        params: how to choose tokens; without ``max_tokens``, twice the file's length and 1,024 tokens more.
        speculation: false decodes one token at a time.

    Raises:
        EditError: the file is empty, or there is no instruction.
    """

    source: SourceText
    instruction: str
    path: str = ""
    params: SamplingParams = field(default_factory=SamplingParams)
    speculation: bool = True

    def __post_init__(self) -> None:
        if not self.source.text.strip():
            raise EditError(f"{self.path or 'The file'} is empty, so there is nothing to edit.")
        if not self.instruction.strip():
            raise EditError("The instruction is empty; say what to change.")


@dataclass(frozen=True, slots=True)
class EditProgress:
    """One step of a running edit.

    Attributes:
        piece: what the model wrote.
        line: base lines passed so far.
        lines: base lines in all.
        stats: cost so far.
    """

    piece: Piece
    line: int
    lines: int
    stats: Stats


@dataclass(frozen=True, slots=True)
class EditResult:
    """The end of an edit.

    Attributes:
        text: the edited file (LF line ends), or as much of it as is certain if the answer was cut off.
        data: its bytes, with the line ends, byte-order mark and final newline of the original; None if the answer
            was cut off, so that half a file can never replace a whole one.
        finish_reason: ``"stop"``, or ``"length"`` if the answer was cut off.
        stats: what it cost.
    """

    text: str
    data: bytes | None
    finish_reason: FinishReason
    stats: Stats


def edit(engine: Engine, request: EditRequest) -> Iterator[EditProgress | EditResult]:
    """Rewrites a file. Yields progress and, last, the result; closing the iterator stops the work.

    Raises:
        EditError: the file does not fit the model, or the answer cannot safely replace it.
    """
    question = edit_prompt(request.source.text, request.instruction, request.path)
    encoded = question.encode(engine.template)
    spans = tuple(Span(*span, "base") for span in encoded.spans if span is not None)
    expected = Reference(engine.whole_answer(question.unchanged()), "prediction")
    prompt = Prompt(encoded.ids, spans, (expected,))
    params = _bounded(request.params, prompt, engine.context_length)
    session = engine.submit(prompt, params, speculation=request.speculation, continuing=True)
    reader, progress = question.reader(), LineProgress(request.source.text)
    text: list[str] = []
    for piece in engine.follow(session):
        text.append(reader.push(piece.text))
        yield EditProgress(piece, progress.push(text[-1]), progress.lines, session.stats())
    assert session.finish_reason is not None
    data = None
    if session.finish_reason == "stop":
        text.append(reader.finish())
        data = request.source.restore("".join(text))
    yield EditResult("".join(text), data, session.finish_reason, session.stats())


def _bounded(params: SamplingParams, prompt: Prompt, context_length: int) -> SamplingParams:
    size = sum(span.end - span.start for span in prompt.spans)
    room = context_length - len(prompt.ids)
    if room < size:
        raise EditError(
            f"The file has {size} tokens and its edited version needs about as many again, but of the {context_length} "
            f"tokens that this model holds only {max(room, 0)} are left; edit a smaller file or choose a model with a "
            "longer context."
        )
    if params.max_tokens is not None:
        return params
    return replace(params, max_tokens=min(room, _GROWTH * size + _ROOM))

"""From a recorded edit to what a proposer sees: prompt and answer in tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tokenizers import Tokenizer

from lookup_bench.records import Edit
from lookup_spec.propose.prompt import Prompt, Reference, Span

MAX_ANSWER_TOKENS = 2500

_SYSTEM = "<|im_start|>system\nYou are a careful code editor.<|im_end|>\n"
_END = "<|im_end|>"


@dataclass(frozen=True, slots=True)
class Case:
    """One edit as a decoding task.

    Attributes:
        edit: what it is made from.
        prompt: with the file before the change as its base.
        prediction: the answer if nothing were to change; the layout that is asked for tells it.
        answer: the fenced file after the change and the end token.
    """

    edit: Edit
    prompt: Prompt
    prediction: tuple[int, ...]
    answer: tuple[int, ...]

    def predicted(self) -> Prompt:
        """The prompt with the prediction, as the pipeline gives it."""
        prediction = Reference(self.prediction, "prediction")
        return replace(self.prompt, references=(*self.prompt.references, prediction))


def cases(
    edits: Sequence[Edit], tokenizer: Tokenizer, workspace: Sequence[str] = (), most: int = MAX_ANSWER_TOKENS
) -> Iterator[Case]:
    """Tokenizes edits, leaving out those whose answer is longer than ``most`` tokens.

    Args:
        edits: what to lay out.
        tokenizer: of the model; its chat markers need not be those used here.
        workspace: other files that the client sent along.
        most: the longest answer, in tokens.
    """
    files = tuple(
        Reference(tuple(tokenizer.encode(text, add_special_tokens=False).ids), "document") for text in workspace
    )
    for edit in edits:
        fence = fence_for(edit.before, edit.after)
        prediction, answer = (_answer(text, fence, tokenizer) for text in (edit.before, edit.after))
        if len(answer) <= most:
            yield Case(edit, _prompt(edit, fence, tokenizer, files), prediction, answer)


def _answer(text: str, fence: str, tokenizer: Tokenizer) -> tuple[int, ...]:
    return tuple(tokenizer.encode(f"{fence}\n{_body(text)}\n{fence}{_END}", add_special_tokens=False).ids)


def fence_for(*texts: str) -> str:
    """A run of backticks longer than any in the texts, at least three."""
    longest = max((len(run) for text in texts for run in re.findall(r"`{3,}", text)), default=2)
    return "`" * max(3, longest + 1)


def _prompt(edit: Edit, fence: str, tokenizer: Tokenizer, files: tuple[Reference, ...]) -> Prompt:
    head = f"{_SYSTEM}<|im_start|>user\n{fence}\n"
    base = _body(edit.before)
    wish = f"Instruction: {edit.instruction}\nReturn the whole edited file."
    rest = f"\n{fence}\n{wish}{_END}\n<|im_start|>assistant\n"
    encoding = tokenizer.encode(head + base + rest, add_special_tokens=False)
    # Tokens that straddle an edge of the base belong to it, as far as they hold any of it.
    ends = [end for _, end in encoding.offsets]
    start = next((i for i, end in enumerate(ends) if end > len(head)), len(ends))
    stop = next((i for i, end in enumerate(ends) if end > len(head) + len(base)), len(ends))
    return Prompt(tuple(encoding.ids), (Span(start, stop, "base"),), files)


def _body(text: str) -> str:
    return text.rstrip("\n")

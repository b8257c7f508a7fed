"""Tasks that strain a proposer: edits amid much other text, and texts that indexes are known to suffer from."""

from __future__ import annotations

import base64
import random
import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, pairwise

from tokenizers import Tokenizer

from lookup_bench.cost import Task
from lookup_bench.layout import MAX_ANSWER_TOKENS, Case, cases
from lookup_bench.records import Edit, RecordError
from lookup_spec.propose.prompt import Prompt, Reference, Span

_COPIED, _BETWEEN, _NEW = 2000, 100, 5


def groups(
    edits: Sequence[Edit], contexts: Sequence[int], sample: int, size: int, tokenizer: Tokenizer
) -> list[tuple[str, list[Task]]]:
    """Named groups of tasks: ``sample`` edits amid so many tokens in all, and one hard text each.

    Raises:
        RecordError: no edit's answer is short enough to be replayed.
    """
    step = max(1, len(edits) // sample)
    chosen = list(edits[step // 2 :: step])[:sample]
    laid_out = [(edit, case) for edit in chosen for case in cases([edit], tokenizer)]
    if not laid_out:
        raise RecordError(f"None of {len(chosen)} edits has an answer of at most {MAX_ANSWER_TOKENS} tokens.")
    made = []
    for place, name in ((amid_prompt, "edit amid documents"), (amid_file, "edit amid a long file")):
        for context in contexts:
            fills = [_filler(edits, edit, context - len(case.prompt.ids), tokenizer) for edit, case in laid_out]
            made.append((name, [place(case, fill) for (_, case), fill in zip(laid_out, fills, strict=True)]))
    return [*made, *((name, [task]) for name, task in pathological(edits, size, tokenizer))]


def _filler(edits: Sequence[Edit], without: Edit, tokens: int, tokenizer: Tokenizer) -> list[tuple[int, ...]]:
    """The other edits' files, each once, of so many tokens in all, the last one cut; fewer if they hold no more."""
    files: list[tuple[int, ...]] = []
    texts = {edit.path or edit.id: edit.before for edit in edits}
    for path, text in texts.items():
        if tokens <= 0:
            break
        if path != (without.path or without.id):
            files.append(tuple(tokenizer.encode(text, add_special_tokens=False).ids[:tokens]))
            tokens -= len(files[-1])
    return files


def amid_prompt(case: Case, files: Sequence[tuple[int, ...]]) -> Task:
    """The edit with other documents before it in the prompt."""
    edges = list(accumulate(map(len, files), initial=0))
    documents = (Span(start, end, "document") for start, end in pairwise(edges))
    moved = (Span(span.start + edges[-1], span.end + edges[-1], span.kind) for span in case.prompt.spans)
    prompt = Prompt((*chain(*files), *case.prompt.ids), (*documents, *moved), case.predicted().references)
    return Task(prompt, case.answer)


def amid_file(case: Case, files: Sequence[tuple[int, ...]]) -> Task:
    """The edit in the middle of one long file made of others, of which what stands before is written already."""
    (span,) = case.prompt.spans
    fill = tuple(chain(*files))
    before, after = fill[: len(fill) // 2], fill[len(fill) // 2 :]
    ids, prediction = case.prompt.ids, (*before, *case.prediction, *after)
    prompt = Prompt(
        (*ids[: span.start], *before, *ids[span.start : span.end], *after, *ids[span.end :]),
        (Span(span.start, span.end + len(fill), "base"),),
        (Reference(prediction, "prediction"),),
    )
    return Task(prompt, case.answer, before)


def pathological(edits: Sequence[Edit], size: int, tokenizer: Tokenizer) -> Iterator[tuple[str, Task]]:
    """Texts of ``size`` tokens (or as many as the edits give), copied from the middle on with a few new tokens now and
    then."""
    chooser = random.Random(0)

    def encode(text: str) -> list[int]:
        return tokenizer.encode(text, add_special_tokens=False).ids[:size]

    most = tokenizer.get_vocab_size()
    yield "equal tokens", _copied([0] * size, chooser)
    yield "newlines", _copied(encode("\n" * size * 16), chooser)
    yield "period of two", _copied([0, 1] * (size // 2), chooser)
    yield "random tokens", _copied([chooser.randrange(most) for _ in range(size)], chooser)
    yield "no token twice", _copied(list(range(size)), chooser)
    yield "base64", _copied(encode(base64.b64encode(chooser.randbytes(size * 2)).decode()), chooser)
    yield "minified code", _copied(encode(re.sub(r"\s+", " ", "".join(edit.before for edit in edits))), chooser)


def _copied(ids: list[int], chooser: random.Random) -> Task:
    middle = len(ids) // 2
    answer: list[int] = []
    for start in range(middle, min(middle + _COPIED, len(ids)), _BETWEEN):
        answer += ids[start : start + _BETWEEN] + [chooser.randrange(max(ids) + 1) for _ in range(_NEW)]
    prompt = Prompt((*ids, 0), (Span(0, len(ids), "base"),))
    return Task(prompt, tuple(answer), tuple(ids[:middle]))

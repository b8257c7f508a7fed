"""Prompts that ask a model to fill in the middle of a text, with the tokens it was trained to do that by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lookup_spec.text.messages import Span
from lookup_spec.text.template import ChatTemplate

# How models spell the tokens before the text's beginning, before its rest, and before the middle.
_FORMS = (
    ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),
    ("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
    ("<fim-prefix>", "<fim-suffix>", "<fim-middle>"),
    ("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),
)
_REPOSITORY = ("<|repo_name|>", "<repo_name>", "<reponame>")
_FILE = ("<|file_sep|>", "<file_sep>", "<|file_separator|>", "<filename>")
_PADDING = ("<|fim_pad|>", "<fim_pad>", "<fim-pad>")
# Names that a request does not tell; those that llama.cpp writes there.
_PROJECT = "myproject\n"
_NAME = "filename"
_BETWEEN = "\n\n--- snippet ---\n\n"
_LETTERS_PER_TOKEN = 16  # more than any text has on average, so that a long text is not tokenized in vain


@dataclass(frozen=True, slots=True)
class FimTokens:
    """A model's tokens for filling in.

    Attributes:
        prefix: stands before the beginning of the text.
        suffix: stands before the rest of the text.
        middle: calls for what is between them.
        repository: stands before the name of a project, if the model knows several files.
        file: stands before the name of each file, likewise.
        all: these and the padding. In an answer, each says that it is over.
    """

    prefix: int
    suffix: int
    middle: int
    repository: int | None
    file: int | None
    all: frozenset[int]

    @classmethod
    def of(cls, template: ChatTemplate) -> FimTokens | None:
        """What a tokenizer has for this; None if it lacks one of the three. The model's name says nothing."""
        for form in _FORMS:
            ids = [token for spelling in form if (token := template.control_token(spelling)) is not None]
            if len(ids) == len(form):
                break
        else:
            return None
        repository, file, padding = (_first(template, some) for some in (_REPOSITORY, _FILE, _PADDING))
        known = (*ids, repository, file, padding)
        prefix, suffix, middle = ids
        return cls(prefix, suffix, middle, repository, file, frozenset(token for token in known if token is not None))


@dataclass(frozen=True, slots=True)
class FimDocument:
    """Another text that the model may go by: a file, or a part of one."""

    text: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class FimRoom:
    """Most tokens of each part of a prompt. The parts' markers come on top.

    Attributes:
        before: of the text's beginning, whose end is kept.
        after: of its rest, whose start is kept.
        documents: of all other texts; those that come last are kept, whole.
    """

    before: int
    after: int
    documents: int


@dataclass(frozen=True, slots=True)
class FimPrompt:
    """A prompt for filling in.

    Attributes:
        ids: token ids, the start token included.
        spans: where texts stand in them: the documents, the beginning, the rest.
        left_out: tokens of the documents for which there was no room, as far as they were read.
        truncated: something was left out.
    """

    ids: tuple[int, ...]
    spans: tuple[Span, ...]
    left_out: tuple[tuple[int, ...], ...] = ()
    truncated: bool = False


def fim_prompt(
    template: ChatTemplate,
    tokens: FimTokens,
    before: str,
    after: str,
    documents: Sequence[FimDocument] | None = None,
    room: FimRoom | None = None,
) -> FimPrompt:
    """The prompt for what stands between two texts. All texts are data, whatever control tokens they spell.

    Args:
        template: of the model.
        tokens: of the model.
        before: the text up to the gap.
        after: the text behind it.
        documents: other texts, the most important last. With None, not even an empty one, the prompt does not
            speak of a repository.
        room: how much of each part there may be; None takes all.
    """
    parts = _Parts(template.start)
    kept, left_out, unread = _fitting(template, tokens, documents or (), room)
    framed = documents is not None
    if framed and tokens.repository is not None:
        parts.add(tokens.repository, *template.encode_data(_PROJECT))
    for head, body in kept:
        parts.add(*head)
        parts.text(body)
    if framed and tokens.file is not None:
        parts.add(tokens.file, *template.encode_data(f"{_NAME}\n"))
    start = _end_of(template, before, None if room is None else room.before)
    rest = _start_of(template, after, None if room is None else room.after)
    parts.add(tokens.prefix)
    parts.text(start.ids)
    parts.add(tokens.suffix)
    parts.text(rest.ids)
    parts.add(tokens.middle)
    truncated = start.cut or rest.cut or bool(left_out) or unread
    return FimPrompt(tuple(parts.ids), tuple(parts.spans), tuple(left_out), truncated)


class _Parts:
    """A prompt as it grows."""

    def __init__(self, start: Sequence[int]) -> None:
        self.ids = list(start)
        self.spans: list[Span] = []

    def add(self, *ids: int) -> None:
        self.ids += ids

    def text(self, ids: Sequence[int]) -> None:
        if ids:
            self.spans.append((len(self.ids), len(self.ids) + len(ids)))
            self.ids += ids


@dataclass(frozen=True, slots=True)
class _Cut:
    ids: tuple[int, ...]
    cut: bool


def _end_of(template: ChatTemplate, text: str, limit: int | None) -> _Cut:
    if limit is None:
        return _Cut(template.encode_data(text), False)
    tail = text[max(0, len(text) - limit * _LETTERS_PER_TOKEN) :]
    ids = template.encode_data(tail)
    return _Cut(ids[max(0, len(ids) - limit) :], len(tail) < len(text) or len(ids) > limit)


def _start_of(template: ChatTemplate, text: str, limit: int | None) -> _Cut:
    if limit is None:
        return _Cut(template.encode_data(text), False)
    head = text[: limit * _LETTERS_PER_TOKEN]
    ids = template.encode_data(head)
    return _Cut(ids[:limit], len(head) < len(text) or len(ids) > limit)


def _fitting(
    template: ChatTemplate, tokens: FimTokens, documents: Sequence[FimDocument], room: FimRoom | None
) -> tuple[list[tuple[tuple[int, ...], tuple[int, ...]]], list[tuple[int, ...]], bool]:
    """Head and text of each document that fits; the texts that do not; and whether some were not even read.

    What does not fit is still worth copying from, but not worth more reading than what fits.
    """
    kept: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    left_out: list[tuple[int, ...]] = []
    left = unread = None if room is None else room.documents
    for document in reversed(documents):
        if unread is not None and len(document.text) > unread * _LETTERS_PER_TOKEN:
            return kept[::-1], left_out[::-1], True
        body = template.encode_data(document.text)
        if tokens.file is None:
            head = template.encode_data(_BETWEEN)
        else:
            head = (tokens.file, *template.encode_data(f"{document.name or _NAME}\n"))
        size = len(head) + len(body)
        if left is None or (not left_out and size <= left):
            kept.append((head, body))
            left = None if left is None else left - size
        else:
            left_out.append(body)
            unread = max(0, (unread or 0) - size)
    return kept[::-1], left_out[::-1], False


def _first(template: ChatTemplate, spellings: Sequence[str]) -> int | None:
    known = (token for text in spellings if (token := template.control_token(text)) is not None)
    return next(known, None)

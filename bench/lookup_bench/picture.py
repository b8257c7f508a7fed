"""One edit as a picture: the file on the left, the answer on the right, each token coloured by what proposed it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from html import escape
from itertools import zip_longest

from lookup_spec.errors import EditError
from lookup_spec.pipeline.edit import EditDone, EditProgress, edit
from lookup_spec.pipeline.edit_plan import EditRequest
from lookup_spec.pipeline.engine import Engine
from lookup_spec.stats import Stats
from lookup_spec.text.lines import SourceText

_LINE = 17.0
_LETTER = 7.2
_MARGIN = 16.0
_HEAD = 64.0
# Pairs that stay apart for colour-blind readers; the target's own tokens carry no colour but a frame.
_PALETTE = ("#cfe8ff", "#d7f0d0", "#ffe3b8", "#ead9f7", "#f9d6df", "#d9efef", "#efe9c9", "#e2e2e2")


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring characters of one line with the same origin.

    Attributes:
        text: the characters.
        source: what proposed them; empty for the target's own choice.
        step: the forward pass that chose them.
    """

    text: str
    source: str
    step: int


def edited_tokens(engine: Engine, request: EditRequest) -> tuple[list[tuple[str, str, int]], Stats]:
    """Edits a file; for each token of the new file its text, its source and its step.

    Raises:
        EditError: as for the edit itself.
    """
    tokens: list[tuple[str, str, int]] = []
    step = 0
    for event in edit(engine, request):
        if isinstance(event, EditDone):
            return list(_within(tokens, SourceText.from_text(event.text).text)), event.stats
        if isinstance(event, EditProgress):
            step += 1
            for token, source in zip(event.piece.token_ids, event.piece.sources, strict=True):
                piece = engine.vocabulary.piece(token).decode("utf-8", errors="replace")
                tokens.append((piece, source, step))
    raise EditError("The edit ended without a result.")


def _within(tokens: Iterable[tuple[str, str, int]], text: str) -> Iterator[tuple[str, str, int]]:
    """The tokens of the file alone, without the closing fence behind it."""
    left = len(text)
    for piece, source, step in tokens:
        yield piece[:left], source, step
        left -= len(piece)
        if left <= 0:
            return


def draw(base: str, tokens: Iterable[tuple[str, str, int]], title: str) -> str:
    """The picture as SVG.

    Args:
        base: the file before.
        tokens: for each token of the new file, in order: its text, its source and its step.
        title: above the picture.
    """
    right = _lines(tokens)
    left = base.splitlines()
    pairs = _aligned(left, ["".join(run.text for run in line) for line in right])
    sources = sorted({run.source for line in right for run in line if run.source})
    colours = {source: _PALETTE[n % len(_PALETTE)] for n, source in enumerate(sources)}
    widest = max((len(line) for line in left), default=0)
    column = _MARGIN * 2 + widest * _LETTER
    longest = max((sum(len(run.text) for run in line) for line in right), default=0)
    width = max(column + longest * _LETTER + _MARGIN, 640.0)
    height = _HEAD + len(pairs) * _LINE + _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="ui-monospace,Menlo,Consolas,monospace" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        _text(_MARGIN, 22, title, "#1f2328", "600"),
        *_legend(colours),
    ]
    for row, (old, new) in enumerate(pairs):
        y = _HEAD + row * _LINE
        if old is not None:
            parts.append(_text(_MARGIN, y + 12, left[old], "#57606a" if new is not None else "#b35900"))
        if new is not None:
            parts.extend(_answer_line(column, y, right[new], colours))
    return "\n".join([*parts, "</svg>", ""])


def _answer_line(x: float, y: float, runs: Sequence[Run], colours: dict[str, str]) -> Iterator[str]:
    step = None
    for run in runs:
        wide = len(run.text) * _LETTER
        fill = colours.get(run.source, "#ffffff")
        frame = "" if run.source else ' stroke="#cf222e" stroke-width="1"'
        yield (
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{_LINE - 1:.1f}" fill="{fill}"{frame}>'
            f"<title>step {run.step}: {escape(run.source or 'the model itself')}</title></rect>"
        )
        yield _text(x, y + 12, run.text, "#1f2328")
        if run.step != step and step is not None:
            yield f'<path d="M{x:.1f} {y - 1:.1f}v{_LINE:.1f}" stroke="#1f2328" stroke-width="1.5"/>'
        step = run.step
        x += wide


def _legend(colours: dict[str, str]) -> Iterator[str]:
    x = _MARGIN
    for name, fill in [*colours.items(), ("chosen by the model alone", "#ffffff")]:
        frame = ' stroke="#cf222e"' if fill == "#ffffff" else ""
        yield f'<rect x="{x:.1f}" y="34" width="12" height="12" fill="{fill}"{frame}/>'
        yield _text(x + 17, 44, name, "#1f2328")
        x += 34 + len(name) * _LETTER


def _text(x: float, y: float, text: str, fill: str, weight: str = "400") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{fill}" font-weight="{weight}" xml:space="preserve" '
        f'textLength="{len(text) * _LETTER:.1f}">{escape(text.expandtabs(4))}</text>'
        if text
        else ""
    )


def _lines(tokens: Iterable[tuple[str, str, int]]) -> list[list[Run]]:
    """Tokens cut at line breaks; neighbours of one source and step joined."""
    lines: list[list[Run]] = [[]]
    for text, source, step in tokens:
        first, *rest = text.split("\n")
        _append(lines[-1], Run(first, source, step))
        for part in rest:
            lines.append([])
            _append(lines[-1], Run(part, source, step))
    if not lines[-1]:
        lines.pop()
    return lines


def _append(line: list[Run], run: Run) -> None:
    if not run.text:
        return
    if line and (line[-1].source, line[-1].step) == (run.source, run.step):
        run = Run(line.pop().text + run.text, run.source, run.step)
    line.append(run)


def _aligned(left: Sequence[str], right: Sequence[str]) -> list[tuple[int | None, int | None]]:
    pairs: list[tuple[int | None, int | None]] = []
    for _, i1, i2, j1, j2 in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        pairs += zip_longest(range(i1, i2), range(j1, j2))
    return pairs

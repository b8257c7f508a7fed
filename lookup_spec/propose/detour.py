"""From edits of a text to tokens that come instead of others."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise
from operator import attrgetter

from lookup_spec.propose.change import Edit
from lookup_spec.propose.guess import Detour
from lookup_spec.propose.pages import Page
from lookup_spec.propose.retokenizer import Retokenizer

_BROKEN = "\ufffd"


def stretches(page: Page, edits: Sequence[Edit]) -> list[tuple[int, int, list[Edit]]]:
    """The stretches of tokens that edits change, each with its edits.

    A stretch begins with a token that begins a run of white space, or a line, and ends before such a token: tokenizers
    split there, so what stands around it does not matter. Its last token lies behind the edit.

    Args:
        page: whose text is edited.
        edits: disjoint, ascending.
    """
    found: list[tuple[int, int, list[Edit]]] = []
    text, edges = page.text, page.edges
    last = len(edges) - 1
    for edit in edits:
        start, end = page.token(edit.start), page.token(max(edit.start, edit.end - 1)) + 1
        inside: list[Edit] = []
        if found and start < found[-1][1]:
            start, before, inside = found.pop()
            end = max(end, before)
        while start > 0 and not _splits(text, edges[start]):
            start -= 1
        if start == last:
            continue
        while end < last and not (
            _splits(text, edges[end]) and _whole(text[edges[end - 1] : edges[end]]) and edit.end < edges[end]
        ):
            end += 1
        inside.append(edit)
        found.append((start, end, inside))
    return found


def _whole(piece: str) -> bool:
    """Whether a token does not wait for what follows, as spaces do."""
    return piece.endswith("\n") or not piece.isspace()


def _splits(text: str, char: int) -> bool:
    return text[char - 1] == "\n" or (text[char].isspace() and not text[char - 1].isspace())


def detours(
    ids: Sequence[int], page: Page, start: int, end: int, edits: Sequence[Edit], retokenizer: Retokenizer
) -> list[Detour]:
    """What a stretch of tokens becomes when its text is edited, cut where old and new tokens meet.

    Where the tokens differ away from any edit, they depend on what stands around the stretch, and there is no detour.
    The same if a token holds part of a character.

    Args:
        ids: the text that the page is part of.
        page: a page of it.
        start: number on the page of the stretch's first token.
        end: the one behind its last.
        edits: of characters of the stretch; disjoint, ascending.
        retokenizer: knows the tokenizer.
    """
    low, high = page.edges[start], page.edges[end]
    text = page.text[low:high]
    if _BROKEN in text:
        return []
    edges = [edge - low for edge in page.edges[start : end + 1]]
    spans = [(edit.start - low, edit.end - low, edit.new) for edit in edits]
    old = ids[page.start + start : page.start + end]
    new = retokenizer.encode(_edited(text, spans))
    meetings = _meetings(edges, spans, [0, *accumulate(map(len, retokenizer.pieces(new)))])
    if meetings[0] != (0, 0) or meetings[-1] != (len(old), len(new)):
        return []
    found: list[Detour] = []
    between = pairwise(meetings)
    for (i, j), (i_end, j_end) in between:
        if old[i:i_end] == new[j:j_end]:
            continue
        first = low + edges[i]
        # The ways part at the first token that differs, and meet behind it.
        while not (i < i_end and j < j_end and old[i] != new[j]):
            if i < i_end and j < j_end:
                i, j = i + 1, j + 1  # noqa: PLW2901 - the rest of this span
                continue
            further = next(between, None)
            if further is None:
                return found
            i_end, j_end = further[1]  # noqa: PLW2901 - and the next one
        last = low + edges[i_end]
        near = edits[
            bisect_left(edits, first, key=attrgetter("end")) : bisect_right(edits, last, key=attrgetter("start"))
        ]
        reasons = [edit for edit in near if _touches(edit, first, last)]
        if not reasons:
            return []
        edit = max(reasons, key=attrgetter("reach"))
        place = page.start + start
        found.append(Detour(place + i, place + i_end, new[j:j_end], edit.change.kind, edit.change, edit.reach))
    return found


def _touches(edit: Edit, low: int, high: int) -> bool:
    """Whether a stretch of characters holds some of an edit, or lies next to it."""
    return edit.start <= high and low <= edit.end


def _edited(text: str, spans: Sequence[tuple[int, int, str]]) -> str:
    parts, done = [], 0
    for start, end, new in spans:
        parts += [text[done:start], new]
        done = end
    return "".join([*parts, text[done:]])


def _meetings(
    edges: Sequence[int], spans: Sequence[tuple[int, int, str]], new_edges: Sequence[int]
) -> list[tuple[int, int]]:
    """Pairs of token numbers, old and new, that begin at the same character outside of all edits."""
    numbers = {edge: number for number, edge in enumerate(new_edges)}
    pairs: list[tuple[int, int]] = []
    shift, number = 0, 0
    for start, end, new in [*spans, (edges[-1], edges[-1], "")]:
        while number < len(edges) and edges[number] <= start:
            twin = numbers.get(edges[number] + shift)
            if twin is not None:
                pairs.append((number, twin))
            number += 1
        shift += len(new) - (end - start)
        while number < len(edges) and edges[number] < end:
            number += 1
        # An edge behind one edit may be before the next one, too.
        if number and edges[number - 1] >= end:
            number -= 1
    return list(dict.fromkeys(pairs))

"""One place from which the text may go on."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from enum import IntEnum
from typing import NamedTuple

LONGEST = 40
"""Matches are not compared further back than this: longer ones are no better."""


class Kind(IntEnum):
    """Why the text may go on from a place. "Base" is the text that the answer is expected to follow."""

    START = 0
    """Nothing is written yet: the answer begins as is expected, or without what opens it."""
    CONTINUE = 1
    """At the cursor: the answer follows the base."""
    INSERT = 2
    """Something was inserted; the base goes on where it was left."""
    SUBSTITUTE = 3
    """As many tokens of the base were replaced as were written since it was left."""
    SKIP = 4
    """One token of the base was replaced by all that was written since it was left."""
    NEAR = 6  # 5 is free, so that counts which were kept stay true
    """The latest tokens stand in the base a little after the cursor."""
    RESUME = 7
    """… a little after a place where the base was left some time ago."""
    AHEAD = 8
    """… far after the cursor."""
    BEHIND = 9
    """… before the cursor."""
    ELSEWHERE = 10
    """… outside the base."""
    ANSWER = 11
    """… in the answer so far."""
    RENAMED = 12
    """A name that was changed elsewhere, or whose change was announced, changes here, too."""
    KEPT = 13
    """… does not."""
    INDENTED = 14
    """The lines before are indented otherwise than in the base; this one is, too."""
    REPLACED = 15
    """Text was replaced elsewhere, or inserted, and is here, too."""
    ALIKE = 16
    """Some of the base was replaced; it goes on behind the next token that ends like the last one, or one of the next;
    or a line was inserted, and it goes on where the line begins in which it was left."""
    SYNTAX = 17
    """The latest words stand somewhere but for some names, which are changed in what follows there, too."""
    SUCCESSOR = 18
    """The target would have said this after a draft that it refused; one token, and perhaps one more."""


class Detour(NamedTuple):
    """Another way on than a text's own: ``ids`` instead of ``text[start:end]``, then the text again.

    Attributes:
        start: where the ways part.
        end: where they meet, at least one token later.
        ids: at least one token, the first of them another one than ``text[start]``.
        kind: why.
        reason: the change that it is part of.
        reach: what kind of place this is for it.
    """

    start: int
    end: int
    ids: list[int]
    kind: Kind
    reason: Hashable
    reach: int


class Guess(NamedTuple):
    """The text may go on with ``text[place:]``.

    Attributes:
        kind: why.
        text: what is copied from.
        place: index of the next token in it.
        length: how many of the latest tokens stand before the place, too; for CONTINUE, how long it went
            well.
        detail: what else is known, a small number whose meaning depends on the kind.
        detour: what ``text`` belongs to, if it is a detour's; behind its end the base goes on.
    """

    kind: Kind
    text: Sequence[int]
    place: int
    length: int
    detail: int
    detour: Detour | None = None

    @property
    def token(self) -> int:
        """The first guessed token."""
        return self.text[self.place]


def matched(known: Sequence[int], text: Sequence[int], place: int) -> int:
    """How many of the latest tokens of ``known`` stand right before ``text[place]``, counted up to
    ``LONGEST``."""
    length, most = 0, min(LONGEST, place, len(known))
    while length < most and text[place - 1 - length] == known[-1 - length]:
        length += 1
    return length

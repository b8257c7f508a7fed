"""One place from which the text may go on."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple


class Kind(IntEnum):
    """Why the text may go on from a place."""

    CONTINUE = 0
    """At the cursor: the answer follows the base."""
    INSERT = 1
    """Something was inserted; the base goes on where it was left."""
    SUBSTITUTE = 2
    """As many tokens of the base were replaced as were written since it was left."""
    SKIP = 3
    """One token of the base was replaced by all that was written since it was left."""
    NEAR = 4
    """The latest tokens stand in the base a little after the cursor."""
    AHEAD = 5
    """… far after the cursor."""
    BEHIND = 6
    """… before the cursor."""
    ELSEWHERE = 7
    """… outside the base."""
    ANSWER = 8
    """… in the answer so far."""


class Guess(NamedTuple):
    """The text may go on with ``text[place:]``.

    Attributes:
        kind: why.
        text: what is copied from.
        place: index of the next token in it.
        length: how many of the latest tokens stand before the place, too; for CONTINUE, how long it went well.
        detail: what else is known, a small number whose meaning depends on the kind.
    """

    kind: Kind
    text: Sequence[int]
    place: int
    length: int
    detail: int

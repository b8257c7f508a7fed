"""The proposer without some of what it does, to see what that is worth."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lookup_bench.records import RecordError
from lookup_spec.propose.change import Edit, Reach
from lookup_spec.propose.changed import Changes
from lookup_spec.propose.grow import Judged
from lookup_spec.propose.guess import Guess, Kind
from lookup_spec.propose.hazard import Hazards
from lookup_spec.propose.proposer import LookupProposer
from lookup_spec.propose.retokenizer import Retokenizer
from lookup_spec.propose.store import SegmentStore

COUNTS = "counts"
"""Name of the counts that come with the package; without them, rough guesses are made of how likely each guess is."""

_ENTRIES = (Kind.START, Kind.CONTINUE, Kind.KEPT)  # without these there is no base to follow
KINDS = {kind.name.lower(): kind for kind in Kind if kind not in _ENTRIES}
REACHES = {reach.name.lower(): reach for reach in Reach}


def parsed(names: str) -> frozenset[str]:
    """What ``--without`` names.

    Raises:
        RecordError: something else is among it.
    """
    found = frozenset(name.strip() for name in names.split(","))
    known = (*KINDS, *REACHES, COUNTS)
    for name in sorted(found.difference(known)):
        raise RecordError(f"{name!r} cannot be left out; what can is: {', '.join(known)}.")
    return found


class AblatedProposer(LookupProposer):
    """Makes no guesses of some kinds, or starts without counts. All else is as ever.

    Args:
        without: names of kinds of guesses, of kinds of places that changes have, or ``COUNTS``.
        store: as for the proposer.
        retokenizer: as for the proposer.
    """

    def __init__(self, without: frozenset[str], store: SegmentStore, retokenizer: Retokenizer) -> None:
        super().__init__(store, hazards=Hazards({}) if COUNTS in without else None, retokenizer=retokenizer)
        self._kinds = {kind for name, kind in KINDS.items() if name in without}
        self._reaches = {reach for name, reach in REACHES.items() if name in without}

    def _judge(self, guesses: Iterable[Guess]) -> list[Judged]:
        return super()._judge(guess for guess in guesses if guess.kind not in self._kinds)

    def _changes_of(self, ids: Sequence[int], low: int, retokenizer: Retokenizer) -> Changes:
        return _FewerChanges(self._kinds, self._reaches, ids, low, retokenizer)


class _FewerChanges(Changes):
    def __init__(
        self, kinds: set[Kind], reaches: set[Reach], ids: Sequence[int], low: int, retokenizer: Retokenizer
    ) -> None:
        super().__init__(ids, low, len(ids), retokenizer)
        self._without = kinds, reaches

    def _edits(self, text: str) -> list[Edit]:
        kinds, reaches = self._without
        return [edit for edit in super()._edits(text) if edit.change.kind not in kinds and edit.reach not in reaches]

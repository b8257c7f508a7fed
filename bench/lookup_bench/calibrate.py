"""Makes the counts that proposers start from."""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import Tokenizer

from lookup_bench.layout import Case
from lookup_bench.replay import replay
from lookup_spec.propose.hazard import Hazards
from lookup_spec.propose.proposer import LookupProposer
from lookup_spec.propose.store import SegmentStore
from lookup_spec.text.retokenize import TokenizerRetokenizer

_WIDTH = 64
_WITHOUT = 4


def calibrate(cases: Iterable[Case], tokenizer: Tokenizer) -> Hazards:
    """Counts, over recorded edits, which guesses come true; with predictions, and now and then without."""
    hazards, store = Hazards({}), SegmentStore()
    retokenizer = TokenizerRetokenizer(tokenizer)
    for number, case in enumerate(cases):
        for prompt in [case.predicted(), case.prompt][: 1 if number % _WITHOUT else 2]:
            proposer = LookupProposer(store, hazards=hazards, retokenizer=retokenizer)
            replay(proposer, prompt, case.answer, _WIDTH)
    return hazards

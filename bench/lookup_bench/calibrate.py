"""Makes the counts that proposers start from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from tokenizers import Tokenizer

from lookup_bench.layout import Case
from lookup_bench.questions import gaps, questions
from lookup_bench.replay import replay
from lookup_spec.engine.runner import Runner
from lookup_spec.engine.scheduler import Limits
from lookup_spec.model.load import LoadedModel
from lookup_spec.params import SamplingParams
from lookup_spec.pipeline.engine import Engine
from lookup_spec.pipeline.fill import fill
from lookup_spec.pipeline.result import collect
from lookup_spec.propose.base import LATER
from lookup_spec.propose.counts import Counts, Key, Tables, scaled
from lookup_spec.propose.guess import Kind
from lookup_spec.propose.hazard import Hazards, less_known
from lookup_spec.propose.prompt import Prompt, Work
from lookup_spec.propose.proposer import LookupProposer
from lookup_spec.propose.protocol import Proposer
from lookup_spec.propose.store import SegmentStore
from lookup_spec.text.retokenize import TokenizerRetokenizer

_WIDTH = 64
_DRAFTED = 10
_TOGETHER = 8
_ANSWER = {"free": 128, "fill": 48}
_WITHOUT = 4
_REMEMBERED = 20.0
_BORROWED = 10.0
_LEAST = 4.0


def calibrate(cases: Iterable[Case], tokenizer: Tokenizer) -> Tables:
    """Counts, over recorded edits, which guesses come true; with predictions, and now and then without."""
    hazards, store = Hazards({}), SegmentStore()
    retokenizer = TokenizerRetokenizer(tokenizer)
    for number, case in enumerate(cases):
        for prompt in [case.predicted(), case.prompt][: 1 if number % _WITHOUT else 2]:
            proposer = LookupProposer(store, hazards=hazards, retokenizer=retokenizer)
            replay(proposer, prompt, case.answer, _WIDTH)
    return smoothed(hazards)


def answered(loaded: LoadedModel, work: Work, told: Callable[[int, int], None]) -> Tables:
    """Counts, while a model answers what no text is given to follow for, which guesses come true.

    Args:
        loaded: the model.
        work: ``free`` or ``fill``.
        told: hears how many of how many answers are there.

    Raises:
        InvalidRequestError: the model cannot fill in.
    """
    engine = _Counting(loaded)
    if work == "free":
        messages = [[{"role": "user", "content": question}] for question in questions()]
        prompts = [Prompt(engine.template.encode(message).ids) for message in messages]
        ends: frozenset[int] = frozenset()
    else:
        filled = [fill(engine, *gap).told for gap in gaps()]
        prompts = [told_of.prompt for told_of in filled]
        ends = filled[0].stop_token_ids
    params = SamplingParams(max_tokens=_ANSWER[work], stop_token_ids=ends)
    sessions = [engine.submit(prompt, params) for prompt in prompts]
    for number, session in enumerate(sessions):
        told(number, len(sessions))
        collect(engine.follow(session))
    return smoothed(engine.hazards)


class _Counting(Engine):
    """Counts guesses of all requests together, from nothing on.

    All that is likely enough is drafted, whether it pays or not: how far guesses are right is seen where they are
    drafted, and elsewhere it is others that pay.
    """

    def __init__(self, loaded: LoadedModel) -> None:
        super().__init__(loaded, prefix_cache_bytes=0)
        limits = Limits(max_sessions=_TOGETHER, max_draft_tokens=_DRAFTED, kv_tokens=self.room_tokens, kept_tokens=0)
        self._runner = Runner(self._setup.target, limits, costs=None)
        self.hazards = Hazards({})
        self._store = SegmentStore()

    def _proposer(self, tenant: str, work: Work) -> tuple[Proposer, Callable[[], None]]:  # noqa: ARG002 - the engine's signature
        retokenizer = TokenizerRetokenizer(self.tokenizer.backend_tokenizer)
        return LookupProposer(self._store, hazards=self.hazards, retokenizer=retokenizer), lambda: None


def smoothed(hazards: Hazards) -> Tables:
    """What was counted, also with less and less of each key known, each worth a few dozen observations at most.

    The rate of a key is drawn towards that of the key with less known, the more so the less often the key was seen.
    """
    tables: Tables = {}
    for name, full, (came_before, tried_before), (came, tried) in hazards.seen():
        # Recorded answers never talk before they begin, so they do not tell how often one begins after that.
        if name == "first" and full[1:3] == (Kind.START, LATER):
            continue
        table, key = tables.setdefault(name, {}), full
        while key:
            known_came, known_tried = table.get(key, (0.0, 0.0))
            table[key] = [known_came + came - came_before, known_tried + tried - tried_before]
            key = less_known(name, key)
    return {name: _drawn(name, table) for name, table in tables.items()}


def _drawn(name: str, table: Mapping[Key, Counts]) -> dict[Key, Counts]:
    drawn: dict[Key, Counts] = {}
    # Short keys stand before the longer ones that begin with them.
    for key in sorted(table):
        came, tried = scaled(table[key], _REMEMBERED)
        shorter = less_known(name, key)
        if not shorter:
            drawn[key] = [came, tried]
        elif tried >= _LEAST:
            came_shorter, tried_shorter = drawn[shorter]
            drawn[key] = [came + _BORROWED * came_shorter / tried_shorter, tried + _BORROWED]
    return drawn

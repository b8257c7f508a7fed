"""Where an answer ends does not depend on how its tokens came: any end may fall inside an accepted draft."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
import torch
from fakes.proposers import ScriptProposer
from fakes.running import Answer, Job, answer_all
from fakes.scripted import ScriptedModel, recite
from fakes.words import EOS, Words

from lookup_spec.engine.session import Session
from lookup_spec.errors import ContextLengthError, InvalidRequestError
from lookup_spec.model.sampling import DistributionError
from lookup_spec.params import SamplingParams
from lookup_spec.propose.prompt import Prompt
from lookup_spec.propose.protocol import NoProposer

BLOCKS = (0, 1, 2, 3, 4, 5, 6, 100)  # 0 is plain decoding, 100 drafts all there is
BOTH = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
EACH_BLOCK = pytest.mark.parametrize("block", BLOCKS)


def answer(
    words: Words,
    prompt: Sequence[str],
    script: Sequence[str],
    params: SamplingParams,
    *,
    block: int,
    draft: Sequence[str] | None = None,
    ends: Sequence[str] = (EOS,),
    stream: bool = True,
) -> Answer:
    """The answer of a target that says ``script``, with ``draft`` (or the script itself) forced in blocks."""
    prompt_ids, script_ids = words.ids(*prompt), words.ids(*script)
    model = ScriptedModel(recite({prompt_ids: script_ids}), len(words))
    forced = words.ids(*(script if draft is None else draft))
    job = Job(prompt_ids, params, lambda: ScriptProposer(forced), lambda: words.output(params.stop))
    return answer_all(model, [job], width=block, ends=words.ids(*ends), context=500, stream=stream)[0]


def stops_at_last(answer: Answer) -> None:
    """Only the last piece carries an end."""
    assert [piece.finish_reason for piece in answer.pieces[:-1]] == [None] * (len(answer.pieces) - 1)


@EACH_BLOCK
@BOTH
def test_an_end_token_inside_an_accepted_draft_ends_the_answer(block, stream):
    """Nothing behind an end token is delivered, counted or reported, though the target agreed with it."""
    words = Words(["copy", "|", "a", "b", "c", "d", "e", "f"])
    got = answer(
        words,
        ["copy", "|", "a", "b", EOS, "c", "d", "|", "a"],
        ["b", EOS, "c", "d", "e", "f"],
        SamplingParams(max_tokens=6, logprobs=1),
        draft=["b", EOS, "c", "d"],
        block=block,
        stream=stream,
    )
    assert (got.text, got.finish_reason, got.completion_tokens, got.error) == ("b", "stop", 1, None)
    assert got.token_ids == [entry.token for entry in got.logprobs] == list(words.ids("b"))
    stops_at_last(got)


@EACH_BLOCK
def test_without_end_tokens_everything_is_delivered(block):
    """A model without end tokens runs to its limit and raises nothing."""
    words = Words(["copy", "a", "b", "c", "d", "e", "f"])
    script = ["b", EOS, "c", "d", "e", "f"]
    got = answer(words, ["copy", "a"], script, SamplingParams(max_tokens=6), block=block, ends=())
    assert got.token_ids == list(words.ids(*script))
    assert (got.finish_reason, got.error) == ("length", None)


@EACH_BLOCK
def test_a_stop_token_id_ends_like_an_end_token(block):
    """A request's own stop token ends the answer within a draft, also when end tokens are ignored."""
    words = Words(["a", "b", "c", "d"])
    params = SamplingParams(max_tokens=5, stop_token_ids=frozenset(words.ids("c")), ignore_eos=True)
    got = answer(words, ["a"], ["b", EOS, "b", "c", "d"], params, block=block)
    assert got.token_ids == list(words.ids("b", EOS, "b"))
    assert got.finish_reason == "stop"


@EACH_BLOCK
def test_a_prompt_of_one_token_is_enough(block):
    """The shortest prompt behaves like any other."""
    words = Words(["a", "b"])
    got = answer(words, ["a"], ["b", "a", EOS], SamplingParams(), block=block)
    assert (got.text, got.finish_reason) == ("ba", "stop")


@EACH_BLOCK
@BOTH
@pytest.mark.parametrize("limit", [0, 1, 2, 5, 6, 7, 13])
def test_the_token_budget_is_met_exactly(block, stream, limit):
    """Exactly ``max_tokens`` tokens are delivered and counted, wherever a right draft would have led."""
    words = Words(["x", "y", "z"])
    script = ["z", "x", "y"] * 7
    got = answer(
        words,
        ["x", "y", "z", "x", "y", "z", "x", "y"],
        script,
        SamplingParams(max_tokens=limit),
        block=block,
        stream=stream,
    )
    assert got.token_ids == list(words.ids(*script[:limit]))
    assert (got.finish_reason, got.completion_tokens) == ("length", limit)


STOP_SPLITS = {
    "one token": ["return", " total", "\n", "### END"],
    "three tokens": ["return", " total", "\n", "###", " ", "END"],
    "letters": ["return", " total", "\n", *"### END"],
    "with text before it": ["return", " total\n##", "# END"],
    "with text behind it": ["return", " total", "\n###", " END\npr"],
    "after false starts": ["return", " total", "\n", "### END"],
}
AFTER_STOP = ["\n", "print", "(", "total", ")", "\n", "### END", "print", "(", "done", ")", "\n"] * 2


@EACH_BLOCK
@BOTH
@pytest.mark.parametrize("split", STOP_SPLITS)
def test_a_stop_string_anywhere_in_an_accepted_run_ends_the_answer(block, stream, split):
    """However the stop string is cut into tokens and steps, no letter, token or score of it leaks."""
    before = STOP_SPLITS[split]
    words = Words([*before, *AFTER_STOP, "edit"])
    params = SamplingParams(max_tokens=200, stop=("### END",), logprobs=1)
    got = answer(words, ["edit"], [*before, *AFTER_STOP], params, block=block, stream=stream)
    assert (got.text, got.finish_reason, got.error) == ("return total\n", "stop", None)
    # The shortest run of tokens that holds the text; one that also begins the stop string belongs to it.
    kept = next(n for n in range(len(before) + 1) if len("".join(before[:n])) >= len("return total\n"))
    assert got.token_ids == [entry.token for entry in got.logprobs] == list(words.ids(*before[:kept]))
    assert got.completion_tokens == kept
    stops_at_last(got)


@EACH_BLOCK
def test_pieces_hold_the_tokens_of_their_text(block):
    """A streamed piece never runs ahead of its text: tokens wait while their letters may belong to a stop."""
    parts = ["a", "#", "#", "b", "#", "#", "#", "c", "#", "#"]
    words = Words(["edit", *parts])
    params = SamplingParams(max_tokens=len(parts), stop=("####",), logprobs=0)
    got = answer(words, ["edit"], parts, params, block=block)
    text, tokens = "", 0
    for piece in got.pieces:
        text, tokens = text + piece.text, tokens + len(piece.token_ids)
        assert len(piece.logprobs) == len(piece.sources) == len(piece.token_ids)
        assert text == "".join(parts[:tokens])
    assert (text, got.finish_reason) == ("".join(parts), "length")


@EACH_BLOCK
@BOTH
@pytest.mark.parametrize("stop", [(), ("three",)])
def test_log_probabilities_are_the_targets_own(block, stream, stop):
    """One entry for each delivered token, none behind a stop, and never the certainty of a draft."""
    said = ["one", "two", "three", "four"]
    words = Words([*said, "other", "go"])
    (other,) = words.ids("other")
    prompt, script = words.ids("go"), words.ids(*said)

    def scores(path):
        following = script[min(len(path) - 1, 3)]
        return {**dict.fromkeys(range(len(words)), -60.0), following: math.log(0.8), other: math.log(0.2)}

    params = SamplingParams(max_tokens=4, logprobs=2, stop=stop)
    job = Job(prompt, params, lambda: ScriptProposer(script), lambda: words.output(stop))
    (got,) = answer_all(ScriptedModel(scores, len(words)), [job], width=block, ends=(), context=500, stream=stream)
    expected = script[:2] if stop else script
    assert tuple(got.token_ids) == tuple(entry.token for entry in got.logprobs) == expected
    for entry in got.logprobs:
        assert entry.logprob == pytest.approx(-0.223, abs=1e-3)
        assert entry.top[0] == (entry.token, entry.logprob)
        assert entry.top[1] == (other, pytest.approx(-1.609, abs=1e-3))


@EACH_BLOCK
@pytest.mark.parametrize(
    ("length", "room"), [(24, 8), (27, 5), (31, 1)], ids=["room for 8", "room for 5", "room for 1"]
)
def test_the_context_limit_cuts_the_draft_and_the_answer(block, length, room):
    """The answer fills the context and no position beyond it is fed, while a neighbour goes on unharmed."""
    words = Words(["x", "y", "z", "n"])
    cycle = words.ids("x", "y", "z") * 20
    prompt, script = cycle[:length], cycle[length : length + 30]
    neighbour = words.ids("n")
    model = ScriptedModel(recite({neighbour: cycle[:25], prompt: script}), len(words))
    jobs = [
        Job(prompt, SamplingParams(max_tokens=20), lambda: ScriptProposer(script)),
        Job(neighbour, SamplingParams(max_tokens=20), lambda: ScriptProposer(cycle)),
    ]
    got, other = answer_all(model, jobs, width=block, ends=(), context=32)
    assert (tuple(got.token_ids), got.finish_reason, got.error) == (script[:room], "length", None)
    assert (tuple(other.token_ids), other.finish_reason) == (cycle[:20], "length")


@pytest.mark.parametrize("length", [32, 33])
def test_a_prompt_that_fills_the_context_is_refused(length):
    """The refusal states the limit and the size."""
    with pytest.raises(ContextLengthError, match=f"{length}.*32") as caught:
        new_session([1] * length, SamplingParams())
    assert caught.value.param == "prompt"


@EACH_BLOCK
@BOTH
@pytest.mark.parametrize("ending", ["end token", "budget", "no numbers", "target fails"])
def test_text_held_back_for_a_stop_string_is_delivered_at_any_other_end(block, stream, ending):
    """The last word may begin a stop string; when the answer ends otherwise, it is not lost."""
    said = ["read", " write", " close"]
    words = Words([*said, "go"])
    params = SamplingParams(max_tokens=3 if ending == "budget" else 50, stop=("close\nexit",))
    prompt = words.ids("go")
    script = words.ids(*said, EOS) if ending == "end token" else words.ids(*said)
    model = (Failing if ending == "target fails" else ScriptedModel)(recite({prompt: script}), len(words))
    # A failing pass takes its drafts along, so there the last word is left for the target to say.
    draft = script[:-1] if ending == "target fails" else script
    job = Job(prompt, params, lambda: ScriptProposer(draft), lambda: words.output(params.stop))
    (got,) = answer_all(model, [job], width=block, ends=words.ids(EOS), context=500, stream=stream)
    assert got.text == "read write close"
    assert tuple(got.token_ids) == words.ids(*said)
    match ending:
        case "end token":
            assert (got.finish_reason, got.completion_tokens) == ("stop", 3)
        case "budget":
            assert (got.finish_reason, got.completion_tokens) == ("length", 3)
        case "no numbers":
            assert isinstance(got.error, DistributionError)
        case "target fails":
            assert isinstance(got.error, RuntimeError)
    if ending in ("no numbers", "target fails"):
        assert got.finish_reason is None


class Failing(ScriptedModel):
    """Breaks down once the pending token is the script's last."""

    def forward(self, batch):
        for rows in batch:
            if torch.isnan(super()._logits(rows)[0]).any():
                raise RuntimeError("out of memory")
        return super().forward(batch)


@EACH_BLOCK
def test_what_was_held_back_goes_with_the_stop_string_that_it_begins(block):
    """The counter case: the stop string completes, so its beginning is not delivered."""
    words = Words(["read", " write", " close", "\n", "exit", " now", "go"])
    script = ["read", " write", " close", "\n", "exit", " now", EOS]
    got = answer(words, ["go"], script, SamplingParams(stop=("close\nexit",)), block=block)
    assert (got.text, got.finish_reason) == ("read write ", "stop")
    assert got.token_ids == list(words.ids("read", " write", " close"))


@EACH_BLOCK
def test_rows_behind_the_end_cannot_fail_the_answer(block):
    """A draft that runs over the answer's end into rows without numbers changes nothing."""
    words = Words(["a", "b", "go"])
    prompt, script = words.ids("go"), words.ids("a", EOS)
    model = ScriptedModel(recite({prompt: script}), len(words))
    job = Job(prompt, SamplingParams(), lambda: ScriptProposer(words.ids("a", EOS, "b")))
    (got,) = answer_all(model, [job], width=block, ends=words.ids(EOS), context=500)
    assert (tuple(got.token_ids), got.finish_reason, got.error) == (words.ids("a"), "stop", None)


def new_session(prompt: Sequence[int], params: SamplingParams) -> Session:
    model = ScriptedModel(recite({}), 10)
    return Session(
        Prompt.plain(prompt),
        params,
        proposer=NoProposer(),
        output=None,
        cache=model.new_cache(),
        end_ids=[0],
        context_length=32,
        vocab_size=10,
    )


@pytest.mark.parametrize(
    ("prompt", "params", "named"),
    [
        ([], {}, "prompt"),
        ([3, 10], {}, "prompt"),
        ([-1], {}, "prompt"),
        ([1], {"stop": ("x",)}, "stop"),
        ([1], {"logit_bias": {10: 1.0}}, "logit_bias"),
        ([1], {"bad_words": ((1, 10),)}, "bad_words"),
        ([1], {"stop_token_ids": frozenset({10})}, "stop_token_ids"),
    ],
)
def test_requests_that_can_never_be_served_are_refused(prompt, params, named):
    """An empty prompt, unknown tokens, and stop strings without text are named when the session is made."""
    with pytest.raises(InvalidRequestError) as caught:
        new_session(prompt, SamplingParams(**params))
    assert caught.value.param == named

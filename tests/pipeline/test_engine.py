"""The library's front door, on a tiny random model."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path

import pytest

from lookup_spec import ContextLengthError, InvalidRequestError, Load, ModelError, SamplingParams
from lookup_spec.model import graphs, graphs_check
from lookup_spec.model.forward import PackedModel, Rows
from lookup_spec.model.linear import PrepackedLinear
from lookup_spec.params import Sampling
from lookup_spec.pipeline.engine import Engine
from lookup_spec.pipeline.result import collect
from lookup_spec.propose.prompt import Prompt
from tests.model.recorded import Recorded
from tests.server.tiny_service import tiny_model

PROMPT = "def add(a, b):\n    return a + b\n\n\ndef add(a, b):\n"


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(tiny_model())


def test_keyword_arguments_are_the_fields_of_the_settings() -> None:
    assert set(Sampling.__annotations__) == {field.name for field in fields(SamplingParams)}


@pytest.mark.parametrize("options", [{}, {"temperature": 0.9, "seed": 7, "top_p": 0.9}], ids=["greedy", "sampled"])
def test_speculation_and_predictions_change_no_token(engine: Engine, options: Sampling) -> None:
    plain = engine.generate(PROMPT, max_tokens=48, speculation=False, **options)
    fast = engine.generate(PROMPT, max_tokens=48, **options)
    told = engine.generate(PROMPT, max_tokens=48, prediction=plain.text, **options)
    wrong = engine.generate(PROMPT, max_tokens=48, prediction="something else entirely\n" * 5, **options)
    assert plain.stats.drafted == 0
    assert plain.token_ids == fast.token_ids == told.token_ids == wrong.token_ids
    assert plain.text == fast.text == told.text == wrong.text


def test_a_right_prediction_saves_forward_passes(engine: Engine) -> None:
    plain = engine.generate(PROMPT, max_tokens=48, speculation=False)
    told = engine.generate(PROMPT, max_tokens=48, prediction=plain.token_ids)
    assert told.stats.forward_passes < plain.stats.forward_passes / 2
    assert told.stats.accepted <= told.stats.drafted


def test_the_streamed_pieces_are_the_whole_answer(engine: Engine) -> None:
    whole = engine.generate(PROMPT, max_tokens=40, logprobs=2)
    pieces = list(engine.stream(PROMPT, max_tokens=40, logprobs=2))
    assert "".join(piece.text for piece in pieces) == whole.text
    assert tuple(token for piece in pieces for token in piece.token_ids) == whole.token_ids
    assert [piece.finish_reason for piece in pieces[:-1]] == [None] * (len(pieces) - 1)
    assert pieces[-1].finish_reason == whole.finish_reason
    assert len(whole.logprobs) == len(whole.token_ids)


def test_text_and_ids_are_the_same_prompt(engine: Engine) -> None:
    ids = engine.tokenizer.encode(PROMPT)
    assert engine.generate(ids, max_tokens=20).token_ids == engine.generate(PROMPT, max_tokens=20).token_ids


def test_text_is_what_the_tokenizer_decodes(engine: Engine) -> None:
    result = engine.generate(PROMPT, max_tokens=40, ignore_eos=True)
    assert result.text == engine.tokenizer.decode(result.token_ids, skip_special_tokens=True)
    assert result.stats.completion_tokens == len(result.token_ids) == 40


def test_callers_in_several_threads_get_their_own_answers(engine: Engine) -> None:
    prompts = [PROMPT + f"    # {n}\n" for n in range(6)]
    alone = [engine.generate(prompt, max_tokens=24).token_ids for prompt in prompts]
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(lambda prompt: engine.generate(prompt, max_tokens=24).token_ids, prompts))
    assert together == alone


def test_closing_a_stream_stops_the_work(engine: Engine) -> None:
    stream = engine.stream(PROMPT, max_tokens=100, ignore_eos=True)
    next(stream)
    stream.close()  # type: ignore[attr-defined]  # an iterator to callers, a generator in fact
    assert not engine.step()


def test_no_tokens_wanted_means_no_forward(engine: Engine) -> None:
    result = engine.generate(PROMPT, max_tokens=0)
    assert (result.text, result.finish_reason, result.stats.forward_passes) == ("", "length", 0)


def prompt_of(engine: Engine, number: int, size: int = 300) -> tuple[int, ...]:
    """A prompt that no other test has asked."""
    return engine.prompts.encode(f"# {number}\n" + PROMPT * 50)[:size]


def test_a_prompt_that_begins_like_an_earlier_one_computes_only_the_rest(engine: Engine) -> None:
    """The answer is that of an engine that has seen nothing."""
    first, second = (prompt_of(engine, 1) + engine.prompts.encode(f"# {ending}\n") for ending in "ab")
    engine.generate(first, max_tokens=20)
    again = engine.generate(second, max_tokens=20)
    assert again.stats.cached_tokens >= 300
    assert again.token_ids == Engine(tiny_model()).generate(second, max_tokens=20).token_ids


def test_strict_scores_are_the_same_bits_with_and_without_speculation() -> None:
    """In an engine that is asked for them, whatever was kept of earlier requests."""
    engine = Engine(tiny_model(), strict=True)
    prompt = "for item in items:\n    print(item)\n" * 3
    plain = list(engine.stream(prompt, max_tokens=24, logprobs=2, speculation=False))
    fast = list(engine.stream(prompt, max_tokens=24, logprobs=2, prediction="    print(item)\n" * 3))
    assert fast[-1].stats.cached_tokens > 0
    assert fast[-1].stats.drafted > 0
    told, expected = ([each for piece in pieces for each in piece.logprobs] for pieces in (fast, plain))
    assert told == expected


def test_answers_are_strict_where_this_machine_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """By default; where a CPU does not keep it, or if nobody wants it, the same model runs without."""
    assert Engine(tiny_model()).strict
    assert not Engine(tiny_model(), strict=False).strict
    forward = PrepackedLinear.forward
    monkeypatch.setattr(
        PrepackedLinear, "forward", lambda self, rows: forward(self, rows) * (1 + (rows.shape[-2] == 48) * 2.0**-20)
    )
    loose = Engine(tiny_model())
    assert not loose.strict
    assert (
        loose.generate(PROMPT, max_tokens=8).token_ids
        == Engine(tiny_model(), strict=False).generate(PROMPT, max_tokens=8).token_ids
    )
    with pytest.raises(ModelError, match="turn it off"):
        Engine(tiny_model(), strict=True)


def test_a_machine_that_passed_once_is_not_tried_again_while_costs_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One-shot commands start sooner; kept costs are those of a model that passed, on the same machine."""
    first = Engine(tiny_model(), costs=tmp_path)
    first.close()
    tried: list[PackedModel] = []
    monkeypatch.setattr("lookup_spec.engine.setup.check_steady", tried.append)
    assert Engine(tiny_model(), costs=tmp_path).strict
    assert not tried
    Engine(tiny_model())
    assert len(tried) == 1


def test_a_warmed_prompt_is_there_when_it_is_asked(engine: Engine) -> None:
    """All of it but the last token, which decides about the answer."""
    prompt = prompt_of(engine, 2)
    assert engine.warm(prompt).prompt_tokens == 300
    assert engine.generate(prompt, max_tokens=5).stats.cached_tokens == 299


def test_what_one_tenant_warms_is_cold_for_another(engine: Engine) -> None:
    prompt = prompt_of(engine, 3)
    engine.warm(prompt, tenant="one")
    cached = {}
    for tenant in ("one", "other"):
        session = engine.submit(Prompt(prompt), SamplingParams(max_tokens=1), tenant=tenant)
        cached[tenant] = collect(engine.follow(session)).stats.cached_tokens
    assert cached == {"one": 299, "other": 0}


def test_nothing_is_kept_if_nothing_is_to_be_kept() -> None:
    engine = Engine(tiny_model(), prefix_cache_bytes=0)
    assert [engine.generate(PROMPT, max_tokens=5).stats.cached_tokens for _ in range(2)] == [0, 0]
    assert engine.load == Load()


def test_a_small_memory_shortens_the_context() -> None:
    """What cannot be held is refused, in words that say how much can."""
    model = tiny_model()
    size = PackedModel(model.model).token_bytes
    engine = Engine(model, kv_cache_bytes=300 * size)
    assert engine.context_length == 256
    with pytest.raises(ContextLengthError, match="256"):
        engine.generate(prompt_of(engine, 4), max_tokens=1)
    result = engine.generate(prompt_of(engine, 4, 200), ignore_eos=True)
    assert (result.stats.completion_tokens, result.finish_reason) == (56, "length")
    with pytest.raises(ModelError, match=f"give at least {64 * size}"):
        Engine(model, kv_cache_bytes=63 * size)


def test_the_memory_of_keys_and_values_is_what_it_is_said_to_be() -> None:
    """Bytes per token, counted on a cache of many."""
    model = PackedModel(tiny_model().model)
    cache = model.new_cache(640)
    model.forward([Rows(cache, [1] * 600, range(-1, 599), 600)])
    assert cache.nbytes == 640 * model.token_bytes


def test_where_graphs_can_be_captured_answers_come_from_replays(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same answers, with and without speculation; the memory of seats is taken from that of keys and values."""
    capture = Recorded()
    monkeypatch.setattr(graphs_check, "capture_for", lambda _: capture)
    monkeypatch.setattr(graphs, "_AT_START", 1)
    model = PackedModel(tiny_model().model)
    size = 40_000 * model.token_bytes
    replaying = Engine(tiny_model(), kv_cache_bytes=size, strict=False)
    assert replaying.room_tokens <= 40_000 - 2 * 4_000
    before = capture.replayed
    for speculation in (False, True):
        expected = engine.generate(PROMPT, max_tokens=24, speculation=speculation)
        got = replaying.generate(PROMPT, max_tokens=24, speculation=speculation)
        assert got.token_ids == expected.token_ids
    assert capture.replayed - before >= 24
    before = capture.captured
    assert Engine(tiny_model(), kv_cache_bytes=size, strict=False, enforce_eager=True).room_tokens == 40_000
    assert capture.captured == before


def test_closing_a_stream_frees_its_memory_at_once(engine: Engine) -> None:
    stream = engine.stream(PROMPT, max_tokens=100, ignore_eos=True)
    next(stream)
    assert engine.load.running_tokens > 0
    stream.close()  # type: ignore[attr-defined]  # an iterator to callers, a generator in fact
    assert (engine.load.running, engine.load.running_tokens) == (0, 0)


@pytest.mark.parametrize("prompt", ["", []], ids=["text", "ids"])
def test_an_empty_prompt_is_refused(engine: Engine, prompt: str | list[int]) -> None:
    with pytest.raises(InvalidRequestError, match="empty"):
        engine.generate(prompt, max_tokens=4)


def test_what_guesses_came_true_is_kept_from_run_to_run(tmp_path: Path) -> None:
    """A new engine starts from what the last one learned, each tenant from its own; without a directory nothing is
    kept, and answers never change."""
    directory = tmp_path / "calibration"
    plain = Engine(tiny_model()).generate(PROMPT, max_tokens=48)
    for _ in range(2):
        engine = Engine(tiny_model(), calibration=directory)
        assert engine.generate(PROMPT, max_tokens=48).token_ids == plain.token_ids
        before = {path: path.read_text() for path in directory.glob("*")}
        engine.close()
        (file,) = directory.iterdir()
        assert before.get(file) != file.read_text()


def test_costs_are_measured_once_on_a_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a directory keeps them the next start reads them, as the last run's steps left them."""
    engine = Engine(tiny_model(), costs=tmp_path)
    engine.generate(PROMPT, max_tokens=24)
    engine.close()
    (file,) = tmp_path.iterdir()
    first = file.read_text()
    monkeypatch.setattr("lookup_spec.engine.budget.CostCurve.measure", lambda *_: pytest.fail("measured again"))
    engine = Engine(tiny_model(), costs=tmp_path)
    engine.close()
    assert file.read_text() == first
    engine.generate(PROMPT, max_tokens=24)
    engine.close()
    assert file.read_text() != first


def test_every_ending_teaches(tmp_path: Path) -> None:
    """A finished and an abandoned answer teach; plain decoding does not."""
    for number, (speculation, pieces) in enumerate([(True, 1000), (True, 2), (False, 1000)]):
        directory = tmp_path / str(number)
        engine = Engine(tiny_model(), calibration=directory)
        stream = engine.stream(PROMPT, max_tokens=24, speculation=speculation)
        for _, _ in zip(range(pieces), stream, strict=False):
            pass
        stream.close()  # type: ignore[attr-defined]  # it is a generator
        engine.close()
        assert directory.exists() == speculation

"""The library's front door, on a tiny random model."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path

import pytest

from lookup_spec import InvalidRequestError, SamplingParams
from lookup_spec.params import Sampling
from lookup_spec.pipeline.engine import Engine
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

"""Decoders in environments of their own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from lookup_bench.e2e import systems
from lookup_bench.foreign import Foreign
from lookup_bench.tasks import TaskError, default_tasks

from lookup_spec.propose.prompt import Prompt

# As much of vLLM as is used: it answers with the prompt, two tokens a step, and ends with token 9.
STAND_IN = """
from types import SimpleNamespace as Some


class SamplingParams(Some):
    pass


class LLM:
    def __init__(self, model, **options):
        print("noise on the standard output")
        assert model == "weights" and options["max_num_seqs"] == 1, options
        assert options["speculative_config"]["num_speculative_tokens"] == 20
        self.llm_engine = self

    def add_request(self, name, prompt, params):
        assert params.temperature == 0.0 and params.stop_token_ids == [9]
        self.left = (prompt["prompt_token_ids"] + [9])[: params.max_tokens]
        self.ids = []

    def has_unfinished_requests(self):
        return bool(self.left)

    def step(self):
        self.ids, self.left = self.ids + self.left[:2], self.left[2:]
        return [Some(outputs=[Some(token_ids=self.ids)])]
"""


# As much of llama-cpp-python: it answers likewise, as many tokens an evaluation as are looked up, and one more.
LLAMA = """
class Llama:
    def __init__(self, model_path, *, n_ctx, n_threads, n_threads_batch, draft_model, logits_all, verbose):
        print("noise on the standard output")
        assert model_path == "weights.gguf" and n_threads == n_threads_batch and logits_all == (draft_model is not None)
        self.width = 1 if draft_model is None else 1 + draft_model.tokens
        self.evaluated = 0

    def reset(self):
        self.evaluated = 0

    def eval(self, tokens):
        self.evaluated += len(tokens)

    def generate(self, tokens, *, temp, top_k, repeat_penalty):
        assert temp == 0.0 and self.evaluated == 0
        said = [*tokens, 9, 1, 1]
        for start in range(0, len(said), self.width):
            self.eval(said[start : start + self.width])
            yield from said[start : start + self.width]
"""
LOOKUP = """
class LlamaPromptLookupDecoding:
    def __init__(self, num_pred_tokens):
        self.tokens = num_pred_tokens
"""


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """One that has the stand-ins."""
    (tmp_path / "vllm.py").write_text(STAND_IN)
    (tmp_path / "llama_cpp").mkdir()
    (tmp_path / "llama_cpp" / "__init__.py").write_text(LLAMA)
    (tmp_path / "llama_cpp" / "llama_speculative.py").write_text(LOOKUP)
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "python"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {sys.executable} "$@"\n')
    program.chmod(0o755)
    return tmp_path


def test_a_process_of_another_environment_answers(environment: Path) -> None:
    """Prompt after prompt, its end token left out, whatever it prints; the first step counts as the prompt's."""
    decoder = Foreign.vllm(environment, "vllm-ngram-20", Path("weights"), "bfloat16", frozenset([9]), 100)
    for ids, most, expected in (((1, 2, 3), 10, (1, 2, 3)), ((4, 5, 6, 7), 3, (4, 5, 6))):
        answer = decoder.run(Prompt(ids), most)
        assert answer.token_ids == expected
        assert (answer.forward_passes, answer.decode_tokens) == (2, min(len(ids) + 1, most) - 2)
    decoder.close()


@pytest.mark.parametrize(("name", "passes"), [("llama.cpp", (4, 3)), ("llama.cpp-lookup-2", (2, 1))])
def test_passes_of_llama_cpp_are_told_from_its_tokens(environment: Path, name: str, passes: tuple[int, int]) -> None:
    """It gives token after token, several of one pass; each prompt is begun anew."""
    decoder = Foreign.llama(environment, name, Path("weights.gguf"), frozenset([9]), 100)
    for ids, most, expected, count in (((1, 2, 3), 10, (1, 2, 3), passes[0]), ((4, 5, 6, 7), 3, (4, 5, 6), passes[1])):
        answer = decoder.run(Prompt(ids), most)
        assert answer.token_ids == expected
        assert answer.forward_passes == count
    assert decoder.close() == 0


def test_a_process_that_does_not_start_is_reported(environment: Path) -> None:
    """With what shows why."""
    with pytest.raises(TaskError, match="vllm ended with exit code 1"):
        Foreign.vllm(environment, "vllm", Path("weights"), "bfloat16", frozenset([9]), 100)


@pytest.mark.parametrize(
    "name", ["vllm-eagle-3", "vllm-ngram", "vllm-ngram-0", "vllm-suffix-x", "llama.cpp-3", "llama.cpp-lookup-0"]
)
def test_unknown_ways_are_refused(name: str) -> None:
    """Before anything is loaded."""
    with pytest.raises(TaskError, match="cannot be compared"):
        systems("nothing", "auto", name, vllm=Path(), llama=Path())


@pytest.mark.parametrize(("name", "option"), [("vllm", "--vllm"), ("llama.cpp-lookup-10", "--llama")])
def test_it_needs_to_be_told_where_others_are(name: str, option: str) -> None:
    """They live in environments of their own."""
    with pytest.raises(TaskError, match=option):
        systems("nothing", "auto", f"transformers,{name}")


def test_the_tasks_can_be_made_from_any_python() -> None:
    """Files of 40 to 150 lines, one of them with a bug put in, a long text and a question."""
    tasks = default_tasks()
    assert len({task.name for task in tasks}) == len(tasks) == 8
    assert all(40 <= len(task.text.splitlines()) <= 150 for task in tasks if task.text)
    assert [task for task in tasks if "hi = mid - 1\n" in task.text] == [tasks[4]]
    assert any(len(task.instruction) > 8000 for task in tasks)

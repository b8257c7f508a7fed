"""Decoders in environments of their own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from lookup_bench.e2e import systems
from lookup_bench.foreign import Vllm, speculative
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


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """The interpreter of an environment that has the stand-in."""
    (tmp_path / "vllm.py").write_text(STAND_IN)
    program = tmp_path / "python"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {sys.executable} "$@"\n')
    program.chmod(0o755)
    return program


def test_a_process_of_another_environment_answers(python: Path) -> None:
    """Prompt after prompt, its end token left out, whatever it prints; the first step counts as the prompt's."""
    decoder = Vllm(python, "vllm-ngram-20", Path("weights"), "bfloat16", frozenset([9]), 100)
    for ids, most, expected in (((1, 2, 3), 10, (1, 2, 3)), ((4, 5, 6, 7), 3, (4, 5, 6))):
        answer = decoder.run(Prompt(ids), most)
        assert answer.token_ids == expected
        assert (answer.forward_passes, answer.decode_tokens) == (2, min(len(ids) + 1, most) - 2)
    decoder.close()


def test_a_process_that_does_not_start_is_reported(python: Path) -> None:
    with pytest.raises(TaskError, match="vllm ended with exit code 1"):
        Vllm(python, "vllm", Path("weights"), "bfloat16", frozenset([9]), 100)


@pytest.mark.parametrize("name", ["vllm-eagle-3", "vllm-ngram", "vllm-ngram-0", "vllm-suffix-x"])
def test_unknown_ways_are_refused(name: str) -> None:
    with pytest.raises(TaskError, match="cannot be compared"):
        speculative(name)


def test_it_needs_to_be_told_where_vllm_is() -> None:
    with pytest.raises(TaskError, match="--vllm"):
        systems("nothing", "auto", "transformers,vllm")


def test_the_tasks_can_be_made_from_any_python() -> None:
    """Files of 40 to 150 lines, one of them with a bug put in, a long text and a question."""
    tasks = default_tasks()
    assert len({task.name for task in tasks}) == len(tasks) == 8
    assert all(40 <= len(task.text.splitlines()) <= 150 for task in tasks if task.text)
    assert [task for task in tasks if "hi = mid - 1\n" in task.text] == [tasks[4]]
    assert any(len(task.instruction) > 8000 for task in tasks)

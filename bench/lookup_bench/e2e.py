"""End to end: the same weights and prompts through several decoders, interleaved, in one run."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Protocol

import torch
from transformers import PreTrainedModel, StoppingCriteria, StoppingCriteriaList

from lookup_bench.foreign import Answer, Foreign, looked_up, speculative
from lookup_bench.tasks import Task, TaskError
from lookup_spec.model.load import gguf_path, load_model, model_directory
from lookup_spec.pipeline.engine import Engine
from lookup_spec.propose.prompt import Prompt, Reference, Span
from lookup_spec.text.edit_prompt import edit_prompt
from lookup_spec.text.edit_task import File, Instruction
from lookup_spec.text.lines import SourceText

_STATIC = "transformers-static"
_WARM_UP = 32  # tokens
_CONTEXT = 4096  # tokens of prompt and answer that others make room for


class System(Protocol):
    """A way to decode."""

    @property
    def name(self) -> str:
        """In the table."""

    def run(self, prompt: Prompt, max_tokens: int) -> Answer:
        """Answers greedily."""


@dataclass(frozen=True, slots=True)
class Ours:
    """This library.

    Args:
        engine: the loaded model.
        speculation: false for its own plain decoding.
    """

    engine: Engine
    speculation: bool
    name: str

    def run(self, prompt: Prompt, max_tokens: int) -> Answer:
        result = self.engine.generate(prompt, max_tokens=max_tokens, speculation=self.speculation)
        stats = result.stats
        return Answer(result.token_ids, stats.decode_seconds, stats.decode_tokens, stats.forward_passes)


class _Clock(StoppingCriteria):
    """Notes when the first and the last tokens came; never stops anything."""

    def __init__(self) -> None:
        self.steps: list[tuple[float, int]] = []

    def __call__(self, input_ids: torch.Tensor, scores: Any, **_: Any) -> Any:  # noqa: ARG002 - their signature
        self.steps.append((time.perf_counter(), input_ids.shape[1]))
        return torch.zeros(input_ids.shape[0], dtype=torch.bool, device=input_ids.device)


@dataclass(frozen=True, slots=True)
class Transformers:
    """``generate`` of the transformers library.

    Args:
        model: the same weights, with that library's own attention.
        end_ids: the model's end tokens.
        lookup: ``prompt_lookup_num_tokens``; None for plain decoding.
        static: with a cache of fixed size, for which that library compiles the pass on GPUs.
    """

    model: PreTrainedModel
    end_ids: frozenset[int]
    lookup: int | None
    name: str
    static: bool = False

    def run(self, prompt: Prompt, max_tokens: int) -> Answer:
        ids = torch.tensor([prompt.ids], device=self.model.device)
        clock = _Clock()
        output = self.model.generate(  # type: ignore[operator]  # torch types the inherited method as a tensor
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=max_tokens,
            do_sample=False,
            eos_token_id=sorted(self.end_ids),
            pad_token_id=min(self.end_ids),
            prompt_lookup_num_tokens=self.lookup,
            repetition_penalty=1.0,
            cache_implementation="static" if self.static else None,
            stopping_criteria=StoppingCriteriaList([clock]),
        )
        tokens = output[0, ids.shape[1] :].tolist()
        end = next((n for n, token in enumerate(tokens) if token in self.end_ids), len(tokens))
        (first, start), (last, stop) = clock.steps[0], clock.steps[-1]
        return Answer(tuple(tokens[:end]), last - first, stop - start, len(clock.steps))


def systems(
    model: str,
    dtype: str,
    compare: str,
    *,
    vllm: Path | None = None,
    llama: Path | None = None,
    device: str = "auto",
) -> tuple[Engine, list[System]]:
    """Our plain decoding, ours with speculation, and the others by name.

    Args:
        model: any that can be loaded.
        dtype: of the weights.
        compare: names joined by commas: ``transformers``, ``transformers-static``, ``prompt-lookup-N``, ``vllm``,
            ``vllm-ngram-N``, ``vllm-suffix-N``, ``llama.cpp``, ``llama.cpp-lookup-N``; may be empty.
        vllm: an environment that has vLLM.
        llama: an environment that has llama-cpp-python.
        device: where ours and transformers run.

    Raises:
        TaskError: a name is unknown, or it is not told where vLLM or llama.cpp is.
        ModelError: the model is no file that llama.cpp reads.
    """
    names = [name.strip() for name in compare.split(",") if name.strip()]
    vllms = [name for name in names if name.startswith("vllm")]
    llamas = [name for name in names if name.startswith("llama.cpp")]
    lookups = {name: _lookup(name) for name in names if name not in (*vllms, *llamas)}
    for known, checked, place, option in ((vllms, speculative, vllm, "vllm"), (llamas, looked_up, llama, "llama")):
        for name in known:
            checked(name)
        if known and place is None:
            raise TaskError(f"{known[0]} needs an environment of its own; name it with --{option}.")
    file = gguf_path(model) if llamas else None
    loaded = load_model(model, dtype=dtype, device=device)
    kind = str(loaded.dtype).removeprefix("torch.")
    engine = Engine(loaded, prefix_cache_bytes=0)  # each round computes its prompt
    found: list[System] = [Ours(engine, False, "lookup-spec, plain"), Ours(engine, True, "lookup-spec")]
    if lookups:
        # A second copy of the weights: our engine changes the first one's attention and linear layers.
        stock = load_model(model, dtype=dtype, device=device)
        found += [
            Transformers(stock.model, stock.eos_ids, tokens, name, name == _STATIC) for name, tokens in lookups.items()
        ]
    if vllm is not None:
        directory = model_directory(model, dtype=dtype)
        found += [Foreign.vllm(vllm, name, directory, kind, loaded.eos_ids, _CONTEXT) for name in vllms]
    if llama is not None and file is not None:
        found += [Foreign.llama(llama, name, file, loaded.eos_ids, _CONTEXT) for name in llamas]
    return engine, found


def _lookup(name: str) -> int | None:
    if name in ("transformers", _STATIC):
        return None
    start, _, tokens = name.rpartition("-")
    if start != "prompt-lookup" or not tokens.isdigit() or int(tokens) < 1:
        raise TaskError(
            f"{name!r} cannot be compared; give transformers, {_STATIC}, prompt-lookup-N, vllm, vllm-ngram-N, "
            "vllm-suffix-N, llama.cpp or llama.cpp-lookup-N."
        )
    return int(tokens)


@dataclass(frozen=True, slots=True)
class Row:
    """One system on one task, medians over the rounds.

    Attributes:
        task: its name.
        system: its name.
        tokens: length of the answer.
        tokens_per_second: in the decode phase.
        tokens_per_forward: over the whole answer.
        speedup: over the first system that ran.
        equal: the answer is the first system's.
        first_difference: index of the first token that differs; None if equal.
    """

    task: str
    system: str
    tokens: int
    tokens_per_second: float
    tokens_per_forward: float
    speedup: float
    equal: bool
    first_difference: int | None


def compare(
    systems: Sequence[System],
    tasks: Sequence[Task],
    engine: Engine,
    rounds: int,
    most: int,
    told: Callable[[str], None],
) -> list[Row]:
    """Runs every task through every system, one after the other in each round.

    Args:
        systems: the first is what the others are compared with.
        tasks: what to do.
        engine: makes the prompts.
        rounds: how often; before them each system warms up on the beginning of the first task's answer.
        most: most tokens of an answer.
        told: hears which task runs.
    """
    rows: list[Row] = []
    for system in systems:
        told(f"{system.name} warms up")
        system.run(prompt_of(engine, tasks[0]), _WARM_UP)
    for task in tasks:
        prompt = prompt_of(engine, task)
        runs: dict[str, list[Answer]] = {system.name: [] for system in systems}
        for number in range(rounds):
            told(f"{task.name}, round {number + 1} of {rounds}")
            for system in systems:
                runs[system.name].append(system.run(prompt, min(task.max_tokens, most)))
        rows += _rows(task, runs)
    return rows


def prompt_of(engine: Engine, task: Task) -> Prompt:
    """The prompt that the product itself would send for a task."""
    if not task.text:
        return Prompt(engine.template.encode([{"role": "user", "content": task.instruction}]).ids)
    file = File(SourceText.from_text(task.text).lines, task.path)
    question = edit_prompt(file, Instruction(task.instruction))
    encoded = question.encode(engine.template)
    spans = tuple(Span(*span, "base") for span in encoded.spans if span is not None)
    return Prompt(encoded.ids, spans, (Reference(engine.prompts.whole_answer(question.unchanged()), "prediction"),))


def _rows(task: Task, runs: dict[str, list[Answer]]) -> list[Row]:
    rates = {
        name: median(answer.decode_tokens / max(answer.decode_seconds, 1e-9) for answer in answers)
        for name, answers in runs.items()
    }
    first = next(iter(runs))
    expected = runs[first][0].token_ids
    rows = []
    for name, answers in runs.items():
        ids = answers[0].token_ids
        rows.append(
            Row(
                task.name,
                name,
                len(ids),
                rates[name],
                len(ids) / max(answers[0].forward_passes, 1),
                rates[name] / rates[first],
                ids == expected,
                _difference(ids, expected),
            )
        )
    return rows


def _difference(ids: Sequence[int], expected: Sequence[int]) -> int | None:
    if ids == expected:
        return None
    pairs = zip(ids, expected, strict=False)
    return next((n for n, (one, other) in enumerate(pairs) if one != other), min(len(ids), len(expected)))

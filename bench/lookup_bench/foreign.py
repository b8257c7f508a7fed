"""Decoders that cannot live in our environment: each runs as a process, by the Python of an environment of its own."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from lookup_bench.tasks import TaskError
from lookup_spec.propose.prompt import Prompt

_NGRAM = {"prompt_lookup_max": 4, "prompt_lookup_min": 2}


@dataclass(frozen=True, slots=True)
class Answer:
    """What one run of one task gave.

    Attributes:
        token_ids: the answer, without an end token.
        decode_seconds: from the first forward that chose tokens to the last.
        decode_tokens: tokens chosen in that time.
        forward_passes: forwards that chose tokens.
    """

    token_ids: tuple[int, ...]
    decode_seconds: float
    decode_tokens: int
    forward_passes: int


class Foreign:
    """A decoder that answers in a process of its own.

    Args:
        name: in the table.
        command: what starts the process.
        variables: of its environment, besides ours.
        end_ids: the model's end tokens.

    Raises:
        TaskError: it does not start.
    """

    def __init__(
        self, name: str, command: Sequence[str], variables: Mapping[str, str], end_ids: frozenset[int]
    ) -> None:
        self.name = name
        self._end_ids = end_ids
        # It stays until the benchmark ends, which closes its input.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if "LOOKUP_BENCH_SHOW" not in os.environ else None,
            text=True,
            env={**{key: value for key, value in os.environ.items() if key != "PYTHONPATH"}, **variables},
        )
        self._read()

    @classmethod
    def vllm(
        cls, environment: Path, name: str, directory: Path, dtype: str, end_ids: frozenset[int], context: int
    ) -> Foreign:
        """vLLM, plain or with one of its ways to look drafts up.

        Args:
            environment: that has vLLM.
            name: ``vllm``, ``vllm-ngram-N`` or ``vllm-suffix-N``, N drafted tokens a pass.
            directory: the weights, as safetensors.
            dtype: of the weights.
            end_ids: the model's end tokens.
            context: most tokens of prompt and answer.
        """
        settings = {"model": str(directory), "dtype": dtype, "context": context, "speculative": speculative(name)}
        variables = {
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_CPU_OMP_THREADS_BIND": f"0-{torch.get_num_threads() - 1}",
            "TORCHDYNAMO_DISABLE": "1",
            "HF_HUB_OFFLINE": "1",
        }
        return cls(name, _command(environment, "vllm_worker.py", settings), variables, end_ids)

    @classmethod
    def llama(cls, environment: Path, name: str, file: Path, end_ids: frozenset[int], context: int) -> Foreign:
        """llama.cpp, plain or with prompt lookup, on the weights as they are in a file, mostly of fewer bits.

        Args:
            environment: that has llama-cpp-python.
            name: ``llama.cpp`` or ``llama.cpp-lookup-N``, N drafted tokens a pass.
            file: the model, as GGUF.
            end_ids: the model's end tokens.
            context: most tokens of prompt and answer.
        """
        settings = {
            "model": str(file), "threads": torch.get_num_threads(), "context": context, "lookup": looked_up(name)
        }  # fmt: skip
        return cls(name, _command(environment, "llama_worker.py", settings), {}, end_ids)

    def run(self, prompt: Prompt, max_tokens: int) -> Answer:
        """Answers greedily."""
        assert self._process.stdin is not None
        request = {"ids": list(prompt.ids), "max_tokens": max_tokens, "end_ids": sorted(self._end_ids)}
        print(json.dumps(request), file=self._process.stdin, flush=True)
        answer = self._read()
        ids = answer["token_ids"]
        end = next((n for n, token in enumerate(ids) if token in self._end_ids), len(ids))
        (first, start), (last, stop) = answer["steps"][0], answer["steps"][-1]
        return Answer(tuple(ids[:end]), last - first, stop - start, len(answer["steps"]))

    def close(self) -> int:
        """Ends the process; its exit code."""
        with self._process:
            pass
        return self._process.returncode

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise TaskError(f"{self.name} ended with exit code {self.close()}; LOOKUP_BENCH_SHOW=1 shows why.")
        found: dict[str, Any] = json.loads(line)
        return found


def _command(environment: Path, worker: str, settings: Mapping[str, Any]) -> list[str]:
    return [str(environment / "bin" / "python"), str(Path(__file__).with_name(worker)), json.dumps(settings)]


def looked_up(name: str) -> int | None:
    """How many tokens llama.cpp drafts, by the name of its way; None without drafts.

    Raises:
        TaskError: the name is unknown.
    """
    if name == "llama.cpp":
        return None
    tokens = name.removeprefix("llama.cpp-lookup-")
    if not tokens.isdigit() or int(tokens) < 1:
        raise TaskError(f"{name!r} cannot be compared; give llama.cpp or llama.cpp-lookup-N.")
    return int(tokens)


def speculative(name: str) -> dict[str, Any] | None:
    """vLLM's ``speculative_config`` for a name.

    Raises:
        TaskError: the name is unknown.
    """
    if name == "vllm":
        return None
    method, _, tokens = name.removeprefix("vllm-").partition("-")
    if method not in ("ngram", "suffix") or not tokens.isdigit() or int(tokens) < 1:
        raise TaskError(f"{name!r} cannot be compared; give vllm, vllm-ngram-N or vllm-suffix-N.")
    return {"method": method, "num_speculative_tokens": int(tokens), **(_NGRAM if method == "ngram" else {})}

"""Decoders that cannot live in our environment: each runs as a process, by the Python of an environment of its own."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from lookup_bench.tasks import TaskError
from lookup_spec.propose.prompt import Prompt

_WORKER = Path(__file__).with_name("vllm_worker.py")
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


class Vllm:
    """vLLM, plain or with one of its ways to look drafts up.

    Args:
        python: the interpreter of an environment with vLLM.
        name: ``vllm``, ``vllm-ngram-N`` or ``vllm-suffix-N``, N drafted tokens a pass.
        directory: the weights, as safetensors.
        dtype: of the weights.
        end_ids: the model's end tokens.
        context: most tokens of prompt and answer.

    Raises:
        TaskError: it does not start.
    """

    def __init__(
        self, python: Path, name: str, directory: Path, dtype: str, end_ids: frozenset[int], context: int
    ) -> None:
        self.name = name
        self._end_ids = end_ids
        settings = {
            "model": str(directory),
            "dtype": dtype,
            "context": context,
            "speculative": speculative(name),
        }
        threads = torch.get_num_threads()
        environment = {
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_CPU_OMP_THREADS_BIND": f"0-{threads - 1}",
            "TORCHDYNAMO_DISABLE": "1",
            "HF_HUB_OFFLINE": "1",
        }
        # It stays until the benchmark ends, which closes its input.
        self._process = subprocess.Popen(
            [str(python), str(_WORKER), json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if "LOOKUP_BENCH_SHOW" not in os.environ else None,
            text=True,
            env={**{key: value for key, value in os.environ.items() if key != "PYTHONPATH"}, **environment},
        )
        self._read()

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

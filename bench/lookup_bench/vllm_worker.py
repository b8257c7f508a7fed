"""Answers prompts with vLLM, run by the Python of an environment that has it; speaks JSON lines.

This file is a program of its own: it imports nothing of this repository, for that environment knows nothing of it.

    python vllm_worker.py '{"model": "DIR", "dtype": "bfloat16", "context": 4096, "speculative": null}'

Each line of the input is ``{"ids": […], "max_tokens": n, "end_ids": […]}``; each line of the answer
``{"token_ids": […], "steps": [[seconds, tokens], …]}``: when how many tokens were there.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any


def main() -> None:
    """Serves until the input ends."""
    settings = json.loads(sys.argv[1])
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever the library prints
    os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
    from vllm import LLM, SamplingParams  # type: ignore[import-not-found, unused-ignore]  # never beside us

    llm = LLM(
        settings["model"],
        dtype=settings["dtype"],
        max_model_len=settings["context"],
        enforce_eager=True,
        max_num_seqs=1,
        enable_prefix_caching=False,
        speculative_config=settings["speculative"],
        disable_log_stats=True,
    )
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for number, line in enumerate(sys.stdin):
        request = json.loads(line)
        params = SamplingParams(
            temperature=0.0,
            max_tokens=request["max_tokens"],
            stop_token_ids=request["end_ids"],
            detokenize=False,
        )
        print(json.dumps(_answer(llm.llm_engine, str(number), request["ids"], params)), file=answers, flush=True)


def _answer(engine: Any, name: str, ids: list[int], params: Any) -> dict[str, Any]:
    engine.add_request(name, {"prompt_token_ids": ids}, params)
    steps: list[tuple[float, int]] = []
    tokens: list[int] = []
    while engine.has_unfinished_requests():
        for output in engine.step():
            tokens = list(output.outputs[0].token_ids)
            steps.append((time.perf_counter(), len(tokens)))
    return {"token_ids": tokens, "steps": steps}


if __name__ == "__main__":
    main()

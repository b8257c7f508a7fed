"""Answers prompts with llama.cpp, run by the Python of an environment that has llama-cpp-python; speaks JSON lines.

This file is a program of its own: it imports nothing of this repository, for that environment knows nothing of it.

    python llama_worker.py '{"model": "FILE.gguf", "threads": 2, "context": 4096, "lookup": 10}'

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
    from llama_cpp import Llama  # type: ignore[import-not-found, unused-ignore]  # never beside us
    from llama_cpp.llama_speculative import (  # type: ignore[import-not-found, unused-ignore]  # likewise
        LlamaPromptLookupDecoding,
    )

    lookup = settings["lookup"]
    llm = Llama(
        settings["model"],
        n_ctx=settings["context"],
        n_threads=settings["threads"],
        n_threads_batch=settings["threads"],
        draft_model=None if lookup is None else LlamaPromptLookupDecoding(num_pred_tokens=lookup),
        logits_all=lookup is not None,
        verbose=False,
    )
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(_answer(llm, **request)), file=answers, flush=True)


def _answer(llm: Any, ids: list[int], max_tokens: int, end_ids: list[int]) -> dict[str, Any]:
    passes = 0
    evaluate = llm.eval

    def counted(tokens: Any) -> None:
        nonlocal passes
        passes += 1
        evaluate(tokens)

    llm.eval = counted
    llm.reset()
    steps: dict[int, tuple[float, int]] = {}  # by pass: those that chose nothing are not there
    tokens: list[int] = []
    try:
        for token in llm.generate(ids, temp=0.0, top_k=1, repeat_penalty=1.0):
            tokens.append(token)
            steps[passes] = (time.perf_counter(), len(tokens))
            if token in end_ids or len(tokens) == max_tokens:
                break
    finally:
        llm.eval = evaluate
    return {"token_ids": tokens, "steps": list(steps.values())}


if __name__ == "__main__":
    main()

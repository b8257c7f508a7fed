"""Works through a job and tells, now and then, what the process holds.

A process of its own, so that nothing but the job is measured.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import torch
from lookup_server.openai.batch_lines import BatchApi, Defaults

from lookup_spec.batch.job import Progress, run_job
from lookup_spec.batch.order import alike_together
from lookup_spec.batch.pool import Pool
from lookup_spec.batch.request import Request
from lookup_spec.batch.results import Place, Results, claimed
from lookup_spec.pipeline.engine import Engine
from tests.server.tiny_service import tiny_model

_POOL = 1 << 20  # bytes: full after some dozen requests
_LOOKS = 20


def requests(count: int) -> Iterator[Request]:
    """No two alike, though all begin alike; some fail."""
    for number in range(count):
        text = "".join(f"value_{number}_{place} = f{place}({number})\n" for place in range(6))
        body: dict[str, Any] = {"messages": [{"role": "user", "content": f"Edit this:\n{text}"}]}
        body["max_tokens"] = 2 if number % 50 else -1
        yield Request(number + 1, f"r{number}", "/v1/chat/completions", body)


def main(folder: Path, count: int) -> None:
    """Prints a list of lines that came to an end so far, megabytes, Python's blocks of memory, and open files."""
    torch.set_num_threads(1)
    engine = Engine(tiny_model(), kv_cache_bytes=4 * _POOL, prefix_cache_bytes=_POOL, segment_store_bytes=_POOL)
    place, looks = Place.beside(folder / "out.jsonl"), list[tuple[int, float, int, int]]()

    def look(progress: Progress) -> None:
        done = progress.answered + progress.failed
        if done * _LOOKS // count > len(looks):
            gc.collect()
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            megabytes = pages * os.sysconf("SC_PAGE_SIZE") / 1e6
            looks.append((done, megabytes, sys.getallocatedblocks(), len(os.listdir("/proc/self/fd"))))

    with claimed(place), closing(Results(place, {"model": "tiny"})) as results:
        left = alike_together(results.unfinished(requests(count)))
        run_job(Pool(engine, BatchApi(engine, ["tiny"], Defaults()), 8), left, results, count, show=look)
    engine.close()
    print(json.dumps(looks))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))

"""Kills a job again and again, and compares what comes of it with what comes undisturbed.

A process of its own, so that it has one thread and can be forked: no child has to load anything.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from lookup_server.openai.batch_lines import BatchApi, Defaults

from lookup_spec.batch.job import run_job
from lookup_spec.batch.pool import Pool
from lookup_spec.batch.request import Lines
from lookup_spec.batch.results import Place, Results, claimed
from lookup_spec.batch.summaries import Summarizing
from lookup_spec.batch.summary_template import SummaryTemplate
from lookup_spec.batch.texts import Source, texts
from lookup_spec.batch.work import Api
from lookup_spec.pipeline.engine import Engine
from tests.server.tiny_service import tiny_model


def requests(count: int) -> list[str]:
    """Lines of many kinds: greedy, sampled, several answers, wrong."""
    lines = []
    for number in range(count):
        messages = [{"role": "user", "content": f"def f{number}(a, b):\n    return " + "a + b " * (number % 5)}]
        body: dict[str, Any] = {"messages": messages, "max_tokens": 4 + number % 9, "temperature": number % 3 / 2}
        if number % 7 == 3:
            body["n"] = 2
        if number % 11 == 5:
            body["temperature"] = -1
        lines.append(json.dumps({"custom_id": f"r{number}", "url": "/v1/chat/completions", "body": body}))
    return lines


def write_input(path: Path, count: int = 24) -> None:
    """Such lines, one of which has another's name, and one is broken."""
    lines = requests(count)
    lines[17] = lines[17].replace('"r17"', '"r2"')
    lines[8] = lines[8][:40]
    path.write_text("\n".join(lines), encoding="utf-8")


@dataclass(frozen=True)
class Asking:
    """Requests from a file."""

    engine: Engine
    path: Path

    def write_input(self) -> None:
        write_input(self.path)

    def api(self) -> Api:
        return BatchApi(self.engine, ["tiny"], Defaults())

    @contextmanager
    def source(self) -> Iterator[Source]:
        with self.path.open("rb") as file:
            yield Lines(file)


class Summing(Asking):
    """Texts from a folder, most of them in several parts whose summaries are joined in several steps."""

    def write_input(self) -> None:
        self.path.mkdir()
        for number, sections in enumerate((12, 1, 0, 5, 30, 2, 7)):
            text = "".join(f"# Section {n}\n\nsome words about {n}\n\n" for n in range(sections))
            (self.path / f"text{number}.md").write_text(text, encoding="utf-8")

    def api(self) -> Api:
        ask = SummaryTemplate("{% if joining %}J{% else %}S{% endif %} {{ name }} {{ part }}/{{ parts }}:\n{{ text }}")
        return Summarizing(ask, 10, 90).api(self.engine, super().api())

    @contextmanager
    def source(self) -> Iterator[Source]:
        yield texts(str(self.path), None, None)


KINDS = {"requests": Asking, "summaries": Summing}


def work(asking: Asking, place: Place, *, keep_order: bool) -> None:
    """The job, as the command runs it."""
    facts = {"model": "tiny", "keep_order": keep_order}
    with asking.source() as source, claimed(place), closing(Results(place, facts)) as results:
        requests = results.unfinished(source.requests())
        run_job(Pool(asking.engine, asking.api(), 4, keep_order=keep_order), requests, results, 24)


def answers_of(lines: str) -> dict[str, Any]:
    """By name, without what time and company decide; each once, or it is an error."""
    answers: dict[str, Any] = {}
    for line in lines.split("\n")[:-1]:
        result = json.loads(line)
        assert result["custom_id"] not in answers, f"{result['custom_id']} was answered twice"
        body = result["response"]["body"]
        answers[result["custom_id"]] = (result["id"], body["choices"], body["usage"]["completion_tokens"])
    return answers


def failures_of(lines: str) -> list[tuple[int, str | None]]:
    """Number and name of each line."""
    failures = [json.loads(line) for line in lines.split("\n")[:-1]]
    return sorted((one["error"]["line"], one["custom_id"]) for one in failures)


def outcome(place: Place) -> tuple[dict[str, Any], list[tuple[int, str | None]]]:
    """Answers and failures."""
    answers, failures = (path.read_text(encoding="utf-8") for path in (place.answers, place.failures))
    return answers_of(answers), failures_of(failures)


def forked(do: Callable[[], None]) -> int:
    """Does something in a child process; returns its id."""
    child = os.fork()
    if child:
        return child
    try:
        do()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def written(place: Place) -> int:
    """Results so far."""
    return sum(map(_lines, (place.answers, place.failures)))


def advanced(place: Place) -> int:
    """Results and parts of results so far."""
    return written(place) + _lines(place.parts)


def _lines(path: Path) -> int:
    try:
        return path.read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


def wait_for(place: Place, lines: int, child: int) -> None:
    """Waits until there are so many results and parts, or the child has ended."""
    while advanced(place) < lines and os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        time.sleep(0.001)


def main(folder: Path, kind: str, kills: int, seed: int) -> None:
    """Prints how many runs were killed, and how many jobs came to their end in spite of it."""
    torch.set_num_threads(1)
    rng = random.Random(seed)
    asking = KINDS[kind](Engine(tiny_model()), folder / "in.jsonl")
    asking.write_input()
    expected = {}
    for keep_order in (False, True):
        place = Place.beside(folder / f"undisturbed{keep_order}.jsonl")
        assert os.waitpid(forked(lambda: work(asking, place, keep_order=keep_order)), 0)[1] == 0  # noqa: B023
        expected[keep_order] = outcome(place)
    assert expected[False] == expected[True]
    killed = jobs = 0
    while killed < kills:
        jobs += 1
        keep_order = jobs % 2 == 0
        place = Place.beside(folder / f"job{jobs}.jsonl")
        while True:
            child = forked(lambda: work(asking, place, keep_order=keep_order))  # noqa: B023
            if killed < kills:
                wait_for(place, advanced(place) + rng.randint(0, 5), child)
                time.sleep(rng.random() * 0.005)
                os.kill(child, signal.SIGKILL)
            status = os.waitpid(child, 0)[1]
            if os.WIFSIGNALED(status):
                killed += 1
                continue
            assert status == 0, "the job failed"
            break
        assert outcome(place) == expected[keep_order]
        assert not place.parts.exists()
    print(json.dumps({"killed": killed, "jobs": jobs}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))

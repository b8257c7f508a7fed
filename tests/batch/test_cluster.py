"""The same job on a Ray cluster, some of which is killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from lookup_spec.batch.results import Place
from tests.batch.killing import outcome, write_input, written
from tests.server.tiny_service import tiny_model

ROOT = Path(__file__).parents[2]
LINES = 100

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="workers are found in /proc"),
]


def environment() -> dict[str, str]:
    paths = os.pathsep.join(str(ROOT / part) for part in ("", "server", "bench"))
    # Ray gives way to everybody else unless told not to: on a busy machine its workers would never begin.
    ray = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled", "RAY_worker_niceness": "0"}
    return {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", **ray}


@pytest.fixture(scope="module")
def cluster() -> Iterator[tuple[str, int]]:
    """The address of a cluster with two CPUs, and the process that all of it descends from."""
    pytest.importorskip("ray")
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    options = [f"--port={port}", "--num-cpus=2", "--object-store-memory=100000000", "--include-dashboard=false"]
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", *options]
    out = subprocess.DEVNULL
    with subprocess.Popen(command, env=environment(), stdout=out, stderr=out, start_new_session=True) as head:
        try:
            yield f"127.0.0.1:{port}", head.pid
        finally:
            for process in [*descendants(head.pid), head.pid]:
                os.kill(process, signal.SIGKILL)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "tiny"
    tiny = tiny_model()
    tiny.model.save_pretrained(folder)
    tiny.tokenizer.save_pretrained(folder)
    return folder


def started(source: Path, place: Place, model: Path, *options: str) -> subprocess.Popen[bytes]:
    command = "from lookup_spec.cli import main; main()"
    arguments = ["batch", "run", source, place.answers, "--model", model, "--dtype", "float32", "--calibration", "off"]
    return subprocess.Popen(
        [sys.executable, "-c", command, *map(str, arguments), *options],
        env=environment(),
        stderr=subprocess.PIPE,
        cwd=source.parent,
    )


def descendants(ancestor: int) -> list[int]:
    """Processes that another one has started, and those that they have."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])

    def descends(process: int) -> bool:
        return process in parents and (parents[process] == ancestor or descends(parents[process]))

    return [process for process in parents if descends(process)]


def workers(head: int) -> list[int]:
    """Processes of engines in a cluster."""
    return [process for process in descendants(head) if b"ray::Worker" in name(process)]


def name(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def wait(true: Callable[[], object], run: subprocess.Popen[bytes] | None = None, seconds: float = 300.0) -> None:
    """Waits for something that must become true, before a run ends if it is about one."""
    end = time.monotonic() + seconds
    while not true():
        assert run is None or run.poll() is None, run.communicate()[1]
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def test_killed_workers_and_drivers_lose_and_double_nothing(
    cluster: tuple[str, int], model: Path, tmp_path: Path
) -> None:
    """Of two workers one is killed, then the driver; gone on with, the job ends as here and undisturbed."""
    address, head = cluster
    source, place, alone = tmp_path / "in.jsonl", Place.beside(tmp_path / "out.jsonl"), tmp_path / "alone.jsonl"
    write_input(source, LINES)
    undisturbed = started(source, Place.beside(alone), model)
    err = undisturbed.communicate()[1]
    assert undisturbed.returncode == 3, err

    driver = started(source, place, model, "--ray", address, "--ray-cpus", "1", "--max-parallel", "2")
    wait(lambda: len(workers(head)) == 2 and written(place) >= 15, driver)
    os.kill(workers(head)[0], signal.SIGKILL)
    wait(lambda: written(place) >= 50, driver)
    driver.kill()
    driver.communicate()
    assert 50 <= written(place) < LINES

    again = started(source, place, model, "--ray", address, "--ray-cpus", "1", "--max-parallel", "2")
    err = again.communicate()[1]
    assert again.returncode == 3, err
    assert outcome(place) == outcome(Place.beside(alone))
    wait(lambda: not workers(head))


def test_a_cluster_without_room_is_one_clear_sentence(cluster: tuple[str, int], model: Path, tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    write_input(source)
    run = started(source, Place.beside(tmp_path / "out.jsonl"), model, "--ray", cluster[0], "--ray-cpus", "64")
    _, err = run.communicate()
    assert run.returncode == 1
    assert b"64 CPUs" in err
    assert b"Traceback" not in err


def test_what_cannot_be_loaded_there_is_said_here(cluster: tuple[str, int], tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    write_input(source)
    (tmp_path / "empty").mkdir()
    run = started(source, Place.beside(tmp_path / "out.jsonl"), tmp_path / "empty", "--ray", cluster[0])
    _, err = run.communicate()
    assert run.returncode == 1
    assert b"config.json" in err, err
    assert b"Traceback" not in err


@pytest.mark.parametrize(
    ("machines", "cpus", "room"),
    [
        ([{"CPU": 16.0}, {"CPU": 8.0}, {}], None, (8, 0, 3)),
        ([{"CPU": 16.0}, {"CPU": 8.0}], 6, (6, 0, 3)),
        ([{"CPU": 16.0, "GPU": 2.0}, {"CPU": 8.0, "GPU": 1.0}, {"CPU": 4.0}], None, (1, 1, 3)),
        ([{"CPU": 2.0}], 4, (4, 0, 0)),
        ([], None, (1, 0, 0)),
    ],
)
def test_there_is_an_engine_on_each_gpu_or_on_so_many_cpus(
    machines: list[dict[str, float]], cpus: int | None, room: tuple[int, int, int]
) -> None:
    pytest.importorskip("ray")
    from lookup_spec.batch.cluster import _room

    assert _room(machines, cpus) == room

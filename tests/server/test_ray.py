"""The service as a Ray Serve application, on a Ray of this machine with replicas of a tiny model, one at first."""

from __future__ import annotations

import importlib.util
import json
import socket
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest

from tests.server.edit_client import events_of
from tests.server.tiny_service import tiny_model, until

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "server" / "deploy"
CODE = "".join(f"def add_{n}(a, b):\n    return a + b + {n}\n" for n in range(20))
HAS_RAY = importlib.util.find_spec("ray") is not None and importlib.util.find_spec("aiohttp") is not None

pytestmark = [
    pytest.mark.skipif(not HAS_RAY, reason="ray[serve] is not installed"),
    pytest.mark.filterwarnings("ignore"),  # Ray's own
]


@pytest.fixture(scope="module")
def application() -> Any:
    sys.path.insert(0, str(DEPLOY))
    try:
        import ray_app

        yield ray_app
    finally:
        sys.path.remove(str(DEPLOY))


def test_requests_about_a_document_have_one_name_and_others_another(application: Any) -> None:
    """Whatever is asked about it and wherever else it stands; for each key it is another."""

    def name(body: Any, path: str = "/v1/edits", **headers: str) -> str:
        return str(application.session_of(path, headers, json.dumps(body).encode()))

    document = {"uri": "file:///a.py", "text": CODE}
    one = name({"document": document, "instruction": "x"})
    assert (
        one
        == name({"document": {**document, "text": "y"}, "instruction": "z"})
        == name({"document": document}, "/edits/warm")
    )
    assert one != name({"document": {"uri": "file:///b.py", "text": CODE}})
    assert one != name({"document": document}, authorization="Bearer a")
    system = {"role": "system", "content": "Be brief."}
    chats = [{"messages": [system, {"role": "user", "content": CODE + end}]} for end in ("rename", "add types")]
    assert name(chats[0]) == name(chats[1]) != name({"messages": [system, {"role": "user", "content": "rename"}]})
    assert name({"prompt": f"{CODE}# a"}) == name({"prompt": f"{CODE}# names"}) != name({"prompt": f"# {CODE}# a"})
    assert name(chats[0], **{"x-session-id": "s"}) == name({"prompt": "other"}, **{"x-session-id": "s"})
    assert name(5) == name([]) == application.session_of("/v1/models", {}, b"\xff")
    assert application.session_of(f"/v1/edits/edit-{one}-{'0' * 32}", {}, b"") == one
    assert application.session_of("/v1/edits/edit-nonsense", {}, b"") != one


def test_what_does_not_go_with_replicas_is_refused(application: Any) -> None:
    with pytest.raises(ValueError, match="batch_dir does not go with replicas"):
        application.build({"batch_dir": "/tmp/x"})
    with pytest.raises(ValueError, match="replicas"):
        application.build({"replicas": 0})


@pytest.fixture(scope="module")
def cluster(application: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    import ray
    from ray import serve

    folder = tmp_path_factory.mktemp("tiny")
    loaded = tiny_model()
    loaded.model.save_pretrained(folder)
    loaded.tokenizer.save_pretrained(folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    paths = [str(path) for path in (ROOT, ROOT / "server", ROOT / "bench", DEPLOY)]
    # On a busy machine, all of Ray's processes take their time to start.
    patience = {"RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "60", "RAY_SERVE_PROXY_HEALTH_CHECK_TIMEOUT_S": "60"}
    environment = {"PYTHONPATH": ":".join(paths), "OMP_NUM_THREADS": "1", **patience}
    ray.init("local", num_cpus=4, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": environment})
    try:
        serve.start(http_options={"host": "127.0.0.1", "port": port})
        settings = {"model": str(folder), "dtype": "float32", "calibration": "off", "api_key": ["one", "two"]}
        scale = {"replicas": 1, "most_replicas": 2, "busy": 1, "patience": 1, "cpus": 0.5}
        serve.run(application.build({**scale, "kv_cache_mb": 50, **settings}))
        yield f"http://127.0.0.1:{port}"
    finally:
        serve.shutdown()
        ray.shutdown()


def cached(client: httpx.Client, number: int, end: str) -> float:
    """How much of a document's prompt was there."""
    prompt = f"# {number}\n{CODE}{end}"
    usage = client.post("/v1/completions", json={"prompt": prompt, "max_tokens": 3}).json()["usage"]
    return float(usage["prompt_tokens_details"]["cached_tokens"] / usage["prompt_tokens"])


def replicas() -> int:
    from ray import serve

    states = serve.status().applications["default"].deployments["Replica"].replica_states
    return int(states.get("RUNNING", 0))


@pytest.fixture(scope="module")
def client(cluster: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=cluster, timeout=120, trust_env=False, headers={"authorization": "Bearer one"}) as one:
        yield one


@pytest.fixture(scope="module")
def grown(client: httpx.Client) -> tuple[list[float], list[float]]:
    """How much of each document was there before there was load, and once it had started a second replica."""
    assert replicas() == 1
    assert all(cached(client, number, "# types") < 0.1 for number in range(16))
    before = [cached(client, number, "# names") for number in range(16)]
    enough = Event()
    body = {"max_tokens": 1000, "ignore_eos": True, "speculation": False}

    def load(number: int) -> None:
        while not enough.is_set():
            client.post("/v1/completions", json={**body, "prompt": f"# {number}"}).raise_for_status()

    with ThreadPoolExecutor(6) as pool:
        loads = [pool.submit(load, number) for number in range(6)]
        try:
            until(lambda: replicas() == 2, 120)
        finally:
            enough.set()
    for one in loads:
        one.result()
    return before, [cached(client, number, "# more") for number in range(16)]


@pytest.mark.slow
def test_load_starts_another_replica_and_documents_stay_where_they_are_known(
    client: httpx.Client, grown: tuple[list[float], list[float]]
) -> None:
    """Some documents move to the new one, where they are computed once; the others stay."""
    before, after = grown
    assert min(before) > 0.9
    assert 0 < sum(found < 0.1 for found in after) < 16
    assert all(found < 0.1 or found > 0.9 for found in after)
    assert all(cached(client, number, "# again") > 0.9 for number in range(16))
    assert replicas() == 2


@pytest.mark.slow
@pytest.mark.usefixtures("grown")
def test_a_cluster_answers_like_one_service_and_keeps_documents_where_they_are_known(client: httpx.Client) -> None:
    assert client.get("/health", headers={"authorization": ""}).json() == {"status": "ok"}
    assert client.get("/v1/models", headers={"authorization": ""}).status_code == 401
    assert client.get("/metrics").status_code == 404
    assert client.post("/v1/completions", content=b"{").json()["error"]["type"] == "invalid_request_error"

    # A second request about each document finds it computed, though there are two replicas to go to.
    assert all(cached(client, number, "# types") < 0.1 for number in range(20, 28))
    assert all(cached(client, number, "# names") > 0.9 for number in range(20, 28))
    other = {"authorization": "Bearer two"}
    usage = client.post("/v1/completions", json={"prompt": f"# 20\n{CODE}# x"}, headers=other).json()["usage"]
    assert usage["prompt_tokens_details"]["cached_tokens"] < 10

    # Streams say what whole replies say, also when many are under way.
    def both(seed: int) -> tuple[str, str]:
        body = {"prompt": f"for item {seed}", "max_tokens": 40, "seed": seed}
        whole = client.post("/v1/completions", json=body).json()["choices"][0]["text"]
        text = client.post("/v1/completions", json={**body, "stream": True}).text
        *events, done, _ = text.split("\n\n")
        assert done == "data: [DONE]"
        chunks = [json.loads(event.removeprefix("data: ")) for event in events]
        return whole, "".join(choice["text"] for chunk in chunks for choice in chunk["choices"])

    with ThreadPoolExecutor(8) as pool:
        assert all(whole == streamed != "" for whole, streamed in pool.map(both, range(16)))

    def busy() -> bool:
        slots = [client.get("/slots", headers={"x-session-id": str(number)}).json() for number in range(16)]
        return any(slot["is_processing"] for one in slots for slot in one)

    # A client that goes away ends the work, and an edit can be ended by its name.
    body = {"prompt": "def", "max_tokens": 1900, "ignore_eos": True, "speculation": False, "stream": True}
    with client.stream("POST", "/v1/completions", json=body) as reply:
        parts = reply.iter_raw()
        assert b"text_completion" in next(parts)
        assert busy()
    until(lambda: not busy())
    edit = {"document": {"uri": "a.py", "text": CODE}, "instruction": "go", "stream": True}
    with client.stream("POST", "/v1/edits", json=edit) as reply:
        text = ""
        for part in reply.iter_text():
            if not text:
                name = json.loads(part.split("\n\n")[0].removeprefix("data: "))["edit_id"]
                ended = client.delete(f"/v1/edits/{name}").status_code
            text += part
    last = events_of(text)[-1]
    assert (ended, last.get("finish_reason")) in ((200, "cancelled"), (404, last.get("finish_reason")))

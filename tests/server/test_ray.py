"""The service as a Ray Serve application, on a Ray of this machine with two replicas of a tiny model."""

from __future__ import annotations

import importlib.util
import json
import socket
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
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
        serve.run(application.build({"replicas": 2, "cpus": 0.5, "kv_cache_mb": 50, **settings}))
        yield f"http://127.0.0.1:{port}"
    finally:
        serve.shutdown()
        ray.shutdown()


@pytest.mark.slow
def test_a_cluster_answers_like_one_service_and_keeps_documents_where_they_are_known(cluster: str) -> None:
    with httpx.Client(base_url=cluster, timeout=60, trust_env=False, headers={"authorization": "Bearer one"}) as client:
        assert client.get("/health", headers={"authorization": ""}).json() == {"status": "ok"}
        assert client.get("/v1/models", headers={"authorization": ""}).status_code == 401
        assert client.get("/metrics").status_code == 404
        assert client.post("/v1/completions", content=b"{").json()["error"]["type"] == "invalid_request_error"

        # A second request about each document finds it computed, though there are two replicas to go to.
        def cached(number: int, end: str) -> float:
            prompt = f"# {number}\n{CODE}{end}"
            usage = client.post("/v1/completions", json={"prompt": prompt, "max_tokens": 3}).json()["usage"]
            return usage["prompt_tokens_details"]["cached_tokens"] / usage["prompt_tokens"]

        assert all(cached(number, "# types") < 0.1 for number in range(8))
        assert all(cached(number, "# names") > 0.9 for number in range(8))
        other = {"authorization": "Bearer two"}
        usage = client.post("/v1/completions", json={"prompt": f"# 0\n{CODE}# x"}, headers=other).json()["usage"]
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

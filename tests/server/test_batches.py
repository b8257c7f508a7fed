"""Files and batches, through the official OpenAI client."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest
from lookup_server.batches.store import Store
from lookup_server.routes import files_and_batches
from lookup_server.settings import Settings

from lookup_spec.errors import LookupSpecError
from lookup_spec.model.load import LoadedModel
from lookup_spec.pipeline.engine import Engine
from tests.alone import alone
from tests.server.tiny_service import SlowEngine, running

CHAT = "/v1/chat/completions"


def line(name: Any, content: str = "say add", url: str = CHAT, **body: Any) -> str:
    body = {"messages": [{"role": "user", "content": content}], "max_tokens": 6, **body}
    return json.dumps({"custom_id": name, "method": "POST", "url": url, "body": body})


def begin(sdk: openai.OpenAI, lines: list[str], **options: Any) -> Any:
    file = sdk.files.create(file=("in.jsonl", "\n".join(lines).encode()), purpose="batch")
    return sdk.batches.create(input_file_id=file.id, endpoint=CHAT, completion_window="24h", **options)


def ended(sdk: openai.OpenAI, batch: Any, until: Callable[[Any], bool] = lambda _: False) -> Any:
    """The batch at its end, or as soon as something is true of it; counts only grow until then."""
    counts = (0, 0)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        batch = sdk.batches.retrieve(batch.id)
        now = (batch.request_counts.completed, batch.request_counts.failed)
        assert now[0] >= counts[0]
        assert now[1] >= counts[1]
        assert sum(now) <= batch.request_counts.total
        counts = now
        if batch.status in ("completed", "failed", "cancelled", "expired") or until(batch):
            return batch
        time.sleep(0.01)
    raise AssertionError(f"still {batch.status}")


def results(sdk: openai.OpenAI, name: str | None) -> dict[str, Any]:
    if name is None:
        return {}
    found = [json.loads(one) for one in sdk.files.content(name).text.splitlines()]
    assert len({one["custom_id"] for one in found}) == len(found)
    return {one["custom_id"]: one for one in found}


def said(result: Any) -> str:
    return "".join(choice["message"]["content"] for choice in result["response"]["body"]["choices"])


@contextmanager
def serving(engine: Engine, folder: Path, **settings: Any) -> Iterator[openai.OpenAI]:
    with (
        running(engine, Settings(batch_folder=folder, **settings)) as service,
        openai.OpenAI(base_url=f"{service.url}/v1", api_key="one", max_retries=0) as sdk,
    ):
        yield sdk


@pytest.fixture(scope="module")
def sdk(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[openai.OpenAI]:
    with serving(engine, tmp_path_factory.mktemp("batches")) as client:
        yield client


def test_a_batch_is_sent_left_alone_and_fetched(sdk: openai.OpenAI) -> None:
    """Its answers are those that the service gives at once; files and batches can be listed and removed."""
    lines = [line("a", temperature=0), line("b", "two", temperature=0), line("c", temperature=-1)]
    batch = begin(sdk, lines, metadata={"note": "x"})
    assert (batch.status, batch.metadata) == ("validating", {"note": "x"})
    batch = ended(sdk, batch)
    assert batch.status == "completed"
    counts = batch.request_counts
    assert (counts.total, counts.completed, counts.failed) == (3, 2, 1)
    answers = results(sdk, batch.output_file_id)
    whole = sdk.chat.completions.create(
        model="", messages=[{"role": "user", "content": "two"}], max_tokens=6, temperature=0
    )
    assert said(answers["b"]) == whole.choices[0].message.content
    failure = results(sdk, batch.error_file_id)["c"]
    assert (failure["response"]["status_code"], failure["error"]["line"]) == (400, 3)
    assert batch.usage.output_tokens == 12
    assert sdk.batches.list(limit=1).data[0].id == batch.id
    output = sdk.files.retrieve(batch.output_file_id)
    assert (output.purpose, output.bytes) == ("batch_output", len(sdk.files.content(output.id).content))
    assert {file.id for file in sdk.files.list()} >= {batch.input_file_id, batch.output_file_id, batch.error_file_id}
    assert sdk.files.delete(batch.output_file_id).deleted
    with pytest.raises(openai.NotFoundError):
        sdk.files.content(batch.output_file_id)


@pytest.mark.parametrize(
    ("lines", "faults"),
    [
        ([], [(None, "empty_file")]),
        (["", "  "], [(None, "empty_file")]),
        ([line("a"), "{broken", "[1]", line("a"), line("")], [2, 3, 4, 5]),
        ([line("a", url="/v1/completions"), line("b", url="/v1/x")], [(1, "mismatched_url"), (2, "mismatched_url")]),
    ],
)
def test_a_file_that_is_no_batch_is_refused_with_its_lines(
    sdk: openai.OpenAI, lines: list[str], faults: list[Any]
) -> None:
    batch = ended(sdk, begin(sdk, lines))
    assert batch.status == "failed"
    assert batch.request_counts.completed == 0
    found = [(one.line, one.code) for one in batch.errors.data]
    assert [one if isinstance(fault, tuple) else one[0] for one, fault in zip(found, faults, strict=True)] == faults


def test_a_batch_of_which_nothing_was_answered_says_why(sdk: openai.OpenAI) -> None:
    batch = ended(sdk, begin(sdk, [line(str(number), model="gpt-4") for number in range(5)]))
    assert (batch.request_counts.failed, batch.output_file_id) == (5, None)
    assert "model_not_found (5)" in batch.errors.data[0].message
    assert len(results(sdk, batch.error_file_id)) == 5


@pytest.mark.parametrize("how", ["cancelled", "expired"])
def test_a_batch_that_ends_early_keeps_what_is_finished(
    loaded: LoadedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """And says of the rest why it was not answered."""
    if how == "expired":
        monkeypatch.setattr(files_and_batches, "_WINDOW", 2)
    names = [str(number) for number in range(400)]
    with serving(SlowEngine(loaded, max_sessions=2), tmp_path, max_sessions=2) as sdk:
        batch = begin(sdk, [line(name) for name in names])
        if how == "cancelled":
            ended(sdk, batch, lambda batch: batch.request_counts.completed >= 3)
            assert sdk.batches.cancel(batch.id).status in ("cancelling", "cancelled")
        batch = ended(sdk, batch)
        assert batch.status == how
        answers, failures = results(sdk, batch.output_file_id), results(sdk, batch.error_file_id)
        with pytest.raises(openai.ConflictError) if how == "expired" else _nothing():
            sdk.batches.cancel(batch.id)
    assert 0 < len(answers) < 400
    assert {one["error"]["code"] for one in failures.values()} == {f"batch_{how}"}
    assert sorted([*answers, *failures], key=int) == names
    counts = batch.request_counts
    assert (counts.total, counts.completed, counts.failed) == (400, len(answers), len(failures))


@contextmanager
def _nothing() -> Iterator[None]:
    yield


def test_a_batch_goes_on_when_the_service_comes_back(loaded: LoadedModel, tmp_path: Path) -> None:
    """Each request is answered once, and as if nothing had happened."""
    lines = [line(str(number), temperature=number % 2) for number in range(16)]
    with serving(SlowEngine(loaded, max_sessions=2), tmp_path / "a", max_sessions=2, grace_seconds=0.1) as sdk:
        batch = begin(sdk, lines)
        ended(sdk, batch, lambda batch: batch.request_counts.completed >= 3)
    with serving(Engine(loaded), tmp_path / "a") as sdk:
        batch = ended(sdk, batch)
        answers = results(sdk, batch.output_file_id)
        undisturbed = results(sdk, ended(sdk, begin(sdk, lines)).output_file_id)
    assert batch.status == "completed"
    assert len(answers) == 16
    assert {name: said(one) for name, one in answers.items()} == {name: said(one) for name, one in undisturbed.items()}


def test_what_is_anothers_is_not_there(engine: Engine, tmp_path: Path) -> None:
    with serving(engine, tmp_path, api_keys=("one", "two")) as sdk, sdk.with_options(api_key="two") as other:
        batch = ended(sdk, begin(sdk, [line("a")]))
        for call in (
            lambda: other.batches.retrieve(batch.id),
            lambda: other.batches.cancel(batch.id),
            lambda: other.files.retrieve(batch.output_file_id),
            lambda: other.files.content(batch.output_file_id),
            lambda: other.files.delete(batch.output_file_id),
            lambda: other.batches.list(after=batch.id),
        ):
            with pytest.raises(openai.NotFoundError):
                call()
        with pytest.raises(openai.BadRequestError):
            other.batches.create(input_file_id=batch.input_file_id, endpoint=CHAT, completion_window="24h")
        assert list(other.batches.list()) == list(other.files.list()) == []


def test_only_one_service_has_a_folder(tmp_path: Path) -> None:
    first = Store(tmp_path)
    with pytest.raises(LookupSpecError, match="--batch-dir"):
        Store(tmp_path)
    first.close()
    Store(tmp_path).close()


def test_without_a_folder_there_are_no_batches(service: Any) -> None:
    with openai.OpenAI(base_url=f"{service.url}/v1", api_key="x", max_retries=0) as sdk:
        with pytest.raises(openai.NotFoundError, match="--batch-dir"):
            sdk.batches.list()
        with pytest.raises(openai.NotFoundError, match="--batch-dir"):
            sdk.files.create(file=("x", b""), purpose="batch")


@pytest.mark.slow
def test_a_service_that_is_killed_again_and_again_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """With SIGKILL, in any state of a batch; ``tests.server.killing_batches`` does it as often as one likes."""
    assert alone("tests.server.killing_batches", tmp_path, 20, 1)["killed"] == 20

"""Predictions that no client sent: told by the layout of the prompt, seen in the usage counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fakes.scribe import Scribe
from lookup_server.settings import Settings

from lookup_spec.model.load import LoadedModel
from lookup_spec.params import SamplingParams
from lookup_spec.propose.prompt import Prompt
from tests.server.tiny_service import running

CODE = "".join(f"def add_{k}(a, b):\n    return a + b + {k}\n\n\n" for k in range(8))
ANSWER = f"```python\n{CODE.replace('add_3(a, b)', 'plus(a, b)')}```"
QUESTION = f"Rename add_3.\n```python\n{CODE}```"
CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": QUESTION}], "temperature": 0}
TEXT: dict[str, Any] = {
    "prompt": f"<|im_start|>user\n{QUESTION}<|im_end|>\n<|im_start|>assistant\n",
    "temperature": 0,
    "max_tokens": 1000,
}


@pytest.fixture(scope="module")
def scribe(loaded: LoadedModel) -> Scribe:
    return Scribe(loaded, ANSWER)


@pytest.fixture(scope="module")
def editor(scribe: Scribe) -> Iterator[httpx.Client]:
    with (
        running(scribe, Settings()) as service,
        httpx.Client(base_url=service.url, timeout=120, trust_env=False) as client,
    ):
        yield client


def post(client: httpx.Client, path: str, body: dict[str, Any]) -> tuple[str, Any]:
    response = client.post(path, json=body)
    assert response.status_code == 200, response.text
    [choice] = response.json()["choices"]
    return choice.get("text") or choice["message"]["content"], response.json()["usage"]


@pytest.mark.parametrize(("path", "body"), [("/v1/chat/completions", CHAT), ("/v1/completions", TEXT)])
def test_a_prediction_told_by_the_prompt_is_counted(editor: httpx.Client, path: str, body: dict[str, Any]) -> None:
    """What was accepted shows in the usage; what was not was never sent, so nothing counts as rejected."""
    text, usage = post(editor, path, body)
    details = usage["completion_tokens_details"]
    assert text == ANSWER
    assert 0.8 * usage["completion_tokens"] < details["accepted_prediction_tokens"] < usage["completion_tokens"]
    assert details["rejected_prediction_tokens"] == 0


def test_a_sent_prediction_wins(editor: httpx.Client) -> None:
    """Its own tokens count, accepted or rejected, and the answer stays the same."""
    sent = {"type": "content", "content": "nothing of the kind " * 20}
    text, usage = post(editor, "/v1/chat/completions", {**CHAT, "prediction": sent})
    assert text == ANSWER
    assert usage["completion_tokens_details"]["rejected_prediction_tokens"] > 0


def test_every_answer_of_several_counts(editor: httpx.Client) -> None:
    counts = []
    for n in (1, 3):
        response = editor.post("/v1/chat/completions", json={**CHAT, "n": n})
        counts.append(response.json()["usage"]["completion_tokens_details"]["accepted_prediction_tokens"])
    assert counts[1] == pytest.approx(3 * counts[0], rel=0.1)


def test_prompts_about_nothing_have_no_such_counts(editor: httpx.Client) -> None:
    _, usage = post(editor, "/v1/completions", {**TEXT, "prompt": "def add(a, b):\n"})
    assert "completion_tokens_details" not in usage
    messages = [{"role": "user", "content": "What is a monad?"}]
    _, usage = post(editor, "/v1/chat/completions", {**CHAT, "messages": messages})
    assert "accepted_prediction_tokens" not in usage["completion_tokens_details"]


def test_what_the_layout_tells_saves_forward_passes(loaded: LoadedModel) -> None:
    """The same prompt takes fewer passes when the engine, which has seen no other, knows which text it is about."""
    told = Scribe(loaded, ANSWER).prompts.chat(CHAT["messages"]).prompt
    passes = []
    for prompt in (told, Prompt(told.ids)):
        scribe = Scribe(loaded, ANSWER)
        *_, last = scribe.follow(scribe.submit(prompt, SamplingParams()))
        assert last.stats is not None
        passes.append(last.stats.forward_passes)
    informed, uninformed = passes
    assert informed < uninformed

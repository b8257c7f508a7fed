"""Two keys at one service: nothing that one does shows in what the other gets, nor in what it costs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from fakes.scribe import Scribe
from lookup_server.settings import Settings

from lookup_spec.model.load import LoadedModel
from tests.server.edit_client import events_of
from tests.server.tiny_service import running

CODE = "".join(f"def add_{k}(a, b):\n    return a + b + {k}\n\n\n" for k in range(8))
ANSWER = f"{CODE.replace('add_3(a, b)', 'plus(a, b)')}```"
CHAT: dict[str, Any] = {
    "messages": [{"role": "user", "content": f"Rename add_3.\n```python\n{CODE}```"}],
    "stream": True,
    "stream_options": {"include_usage": True, "include_speculation": True},
}
EDIT: dict[str, Any] = {
    "document": {"uri": "a.py", "text": CODE},
    "instruction": "Rename add_3.",
    "stream": True,
    "options": {"trace": True},
}
ASKED = [("/v1/chat/completions", CHAT), ("/v1/edits", EDIT)]
TIMES = {"created", "id", "edit_id", "seconds", "prefill_seconds", "decode_seconds"}


@contextmanager
def guarded(loaded: LoadedModel) -> Iterator[httpx.Client]:
    """A service whose passes take no time that could be measured, so that what it drafts does not follow the clock."""
    with (
        running(Scribe(loaded, ANSWER), Settings(api_keys=("one", "two"))) as service,
        httpx.Client(base_url=service.url, timeout=20, trust_env=False) as client,
    ):
        yield client


def timeless(value: Any) -> Any:
    """An event without names and times."""
    if isinstance(value, dict):
        return {key: timeless(one) for key, one in value.items() if key not in TIMES}
    return [timeless(one) for one in value] if isinstance(value, list) else value


def ask(client: httpx.Client, key: str, path: str, body: dict[str, Any]) -> list[Any]:
    """Everything that a stream tells: texts, what was proposed by what, how many passes it took, and what was there."""
    text = client.post(path, json=body, headers={"authorization": f"Bearer {key}"}).raise_for_status().text
    return [timeless(event) for event in events_of(text.replace("data: [DONE]\n\n", ""))]


def test_what_one_key_asks_changes_nothing_for_another(loaded: LoadedModel) -> None:
    """Event by event: the text, its sources, drafts, passes and reused tokens are those of a service of one's own."""
    with guarded(loaded) as client:
        alone = [ask(client, "two", *asked) for asked in ASKED * 2]
    assert alone[:2] != alone[2:]  # what a key has asked shows in what it gets later: there is something to keep apart
    with guarded(loaded) as client:
        for asked in ASKED * 3:
            ask(client, "one", *asked)
        assert [ask(client, "two", *asked) for asked in ASKED * 2] == alone


def test_running_at_the_same_time_shares_nothing_either(loaded: LoadedModel) -> None:
    """A newer edit of the same document makes the older one stale only where both are the same key's."""
    with guarded(loaded) as client:
        alone = ask(client, "two", "/v1/edits", EDIT)
    with (
        guarded(loaded) as client,
        client.stream("POST", "/v1/edits", json=EDIT, headers={"authorization": "Bearer one"}) as other,
    ):
        assert ask(client, "two", "/v1/edits", EDIT) == alone
        events = events_of(other.read().decode())
    assert [timeless(event) for event in events] == alone
    assert events[-1]["finish_reason"] == "stop"

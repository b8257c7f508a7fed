"""A client of the edit protocol, as short as one can be, that shares no code with the service."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from typing import Any

import httpx

Event = dict[str, Any]

LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def events_of(stream: str) -> list[Event]:
    """The events of a complete stream."""
    *blocks, end = stream.split("\n\n")
    assert end == ""
    return [json.loads(block.removeprefix("data: ")) for block in blocks if block != ": hb"]


def apply(base: str, events: Iterable[Event]) -> str:
    """The text after all closed hunks."""
    mark = "\ufeff" if base.startswith("\ufeff") else ""
    lines = LINE.findall(base.removeprefix("\ufeff"))
    hunks = [event for event in events if event["type"] == "hunk" and event["state"] == "closed"]
    for hunk in reversed(hunks):
        lines[hunk["old"]["start_line"] : hunk["old"]["end_line"]] = [hunk["text"]]
    return mark + "".join(lines)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def post(url: str, body: Event, **options: Any) -> httpx.Response:
    return httpx.post(f"{url}/v1/edits", json=body, timeout=120, trust_env=False, **options)


def edit(url: str, body: Event) -> list[Event]:
    """All events of an edit, whose form is checked."""
    response = post(url, body, headers={"accept": "text/event-stream"})
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    events = events_of(response.text)
    assert [event["seq"] for event in events] == list(range(len(events)))
    assert len({(event["edit_id"], event["uri"]) for event in events}) == 1
    assert [event["type"] for event in events].count("start") == (events[0]["type"] == "start") == 1
    assert events[-1]["type"] in ("done", "error")
    traced = {"trace"} if body.get("options", {}).get("trace") else set()
    assert {event["type"] for event in events[1:-1]} <= {"progress", "hunk", *traced}
    return events

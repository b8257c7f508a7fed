"""``/v1/edits`` through real HTTP, with scripted answers."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import httpx
import pytest
from fakes.scribe import Scribe
from lookup_server.edits.documents import Documents
from lookup_server.edits.requests import Document, EditBody, Options
from lookup_server.errors import ApiError
from lookup_server.settings import Settings

from lookup_spec.model.load import LoadedModel
from lookup_spec.pipeline.engine import Engine
from tests.server.edit_cases import ADD, CASES, FOLDER, ROWS, dumped, lines, record
from tests.server.edit_client import apply, edit, events_of, post, sha256
from tests.server.test_connections import assert_idle, read_events, send
from tests.server.tiny_service import CONTEXT, Running, SlowEngine, running, until

FIXED = ADD.replace("-", "+")
LONG = "".join(f"value_{n} = compute({n})\n" for n in range(36))
SLOW = LONG.replace("value_3 =", "other_3 =")


class SlowScribe(Scribe):
    """Takes at least 10 ms a step, so that there is time to interfere."""

    def step(self) -> bool:
        time.sleep(0.01)
        return super().step()


@pytest.fixture(scope="module")
def scribe(loaded: LoadedModel) -> Scribe:
    return Scribe(loaded, "")


@pytest.fixture(scope="module")
def quick(scribe: Scribe) -> Iterator[Running]:
    with running(scribe, Settings(served_names=("tiny",), heartbeat_seconds=0.001)) as one:
        yield one


@pytest.fixture(scope="module")
def keyed(loaded: LoadedModel) -> Iterator[Running]:
    with running(SlowScribe(loaded, SLOW + "```"), Settings(api_keys=("K1", "K2"), max_sessions=4)) as one:
        yield one


def asked(text: str = ADD, **fields: Any) -> dict[str, Any]:
    return {"document": {"uri": "file:///a/sum.py", "text": text}, "instruction": "Fix it.", **fields}


def slow_edit(uri: str = "file:///a/long.py") -> dict[str, Any]:
    """Takes about eight hundred steps."""
    return asked(document={"uri": uri, "text": LONG}, stream=True, options={"speculation": False})


# What the service says.


@pytest.mark.parametrize("name", CASES)
def test_the_recordings_for_editors_are_what_the_service_says(quick: Running, scribe: Scribe, name: str) -> None:
    """Event by event; with its hunks, applied by a client that shares no code, each document is as it should be."""
    recorded = (FOLDER / f"{name}.json").read_text(encoding="utf-8")
    assert dumped(record(quick.url, scribe, name)) == recorded, "run: python -m tests.server.edit_cases"


def test_each_recording_has_its_case() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(CASES)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.final != case.base])
def test_one_reply_says_the_same_as_the_stream(quick: Running, scribe: Scribe, name: str) -> None:
    case = CASES[name]
    scribe.say(case.answer)
    body = case.request(name)
    events, reply = edit(quick.url, body), post(quick.url, {**body, "stream": False}).json()
    start, done = events[0], events[-1]
    assert reply["object"] == "edit"
    assert reply["text"] == case.final
    hunks = [{**hunk, "type": "hunk", "state": "closed"} for hunk in reply["hunks"]]
    assert apply(case.base, hunks) == case.final
    same = ("model", "mode", "document", "range", "shown", "narrowed", "context_files")
    assert {key: reply[key] for key in same} == {key: start[key] for key in same}
    same = ("finish_reason", "truncated", "result_sha256", "usage")
    assert {key: reply[key] for key in same} == {key: done[key] for key in same}


def test_speculation_changes_nothing_but_the_counts(quick: Running, scribe: Scribe) -> None:
    scribe.say(SLOW + "```")
    fast, plain = (edit(quick.url, asked(LONG, options={"speculation": on})) for on in (True, False))
    hunks = [[(event["old"], event["text"]) for event in events if event["type"] == "hunk"] for events in (fast, plain)]
    assert hunks[0] == hunks[1]
    usage = fast[-1]["usage"]
    details = usage["completion_tokens_details"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert details["accepted_prediction_tokens"] > 0.9 * usage["completion_tokens"]
    assert details["rejected_prediction_tokens"] < 0.1 * usage["completion_tokens"]
    assert plain[-1]["usage"]["completion_tokens_details"]["accepted_prediction_tokens"] == 0


@pytest.mark.parametrize("answer", [SLOW + "```", LONG.replace("compute", "größe_😀_") + "```"])
def test_a_trace_tells_every_token_of_every_pass(quick: Running, scribe: Scribe, answer: str) -> None:
    """Its texts joined are the answer, its counts those of the whole edit; the rest of the stream is as without."""
    scribe.say(answer)
    plain, traced = (edit(quick.url, asked(LONG, options={"trace": on})) for on in (False, True))
    passes = [event for event in traced if event["type"] == "trace"]
    tokens = [token for one in passes for token in one["tokens"]]
    assert "".join(token["text"] for token in tokens) == answer
    stats = traced[-1]["stats"]
    assert [one["step"] for one in passes] == list(range(1, stats["forward_passes"] + 1))
    assert {name: sum(one[name] for one in passes) for name in ("drafted", "accepted")} == {
        name: stats[name] for name in ("drafted", "accepted")
    }
    assert len([token for token in tokens if token["source"]]) <= stats["accepted"]
    assert {token["source"] for token in tokens} - {""} <= set(stats["sources"])
    seconds = [one["seconds"] for one in passes]
    assert seconds == sorted(seconds)
    rest = [{key: event.get(key) for key in ("type", "old", "text", "state", "hunks")} for event in traced]
    assert [event for event in rest if event["type"] != "trace"] == [
        {key: event.get(key) for key in ("type", "old", "text", "state", "hunks")} for event in plain
    ]
    assert "stats" not in plain[-1]


def test_a_trace_without_speculation_has_a_pass_for_each_token(quick: Running, scribe: Scribe) -> None:
    """In a stream and in one reply; the model itself is the source of all."""
    scribe.say(FIXED + "```")
    body = asked(options={"trace": True, "speculation": False})
    events, reply = edit(quick.url, body), post(quick.url, body).json()
    passes = [{**event, "seconds": 0} for event in events if event["type"] == "trace"]
    head = {key: event for key, event in events[0].items() if key in ("edit_id", "uri")}
    assert [{**one, "seconds": 0} for one in reply["trace"]] == [
        {key: value for key, value in one.items() if key not in (*head, "type", "seq")} for one in passes
    ]
    assert {len(one["tokens"]) for one in passes[:-1]} == {1}
    assert {token["source"] for one in passes for token in one["tokens"]} == {""}
    assert reply["stats"]["forward_passes"] == len(passes)


@pytest.mark.parametrize(
    ("accept", "stream", "events"),
    [(None, None, False), ("text/event-stream", None, True), ("*/*", True, True), ("text/event-stream", False, False)],
)
def test_the_header_or_the_field_asks_for_events(
    quick: Running, scribe: Scribe, accept: str | None, stream: bool | None, events: bool
) -> None:
    scribe.say(FIXED + "```")
    headers = {"accept": accept} if accept else {}
    response = post(quick.url, {**asked(), **({} if stream is None else {"stream": stream})}, headers=headers)
    assert response.headers["content-type"].startswith("text/event-stream" if events else "application/json")


def test_a_silent_stream_sends_comments_that_no_client_takes_for_its_end(loaded: LoadedModel) -> None:
    with running(SlowScribe(loaded, FIXED + "```"), Settings(heartbeat_seconds=0.001)) as service:
        text = post(service.url, asked(stream=True)).text
    assert "\n\n: hb\n\n" in text
    assert ": ping" not in text
    assert apply(ADD, events_of(text)) == FIXED


def test_the_version_and_the_name_come_back(quick: Running, scribe: Scribe) -> None:
    scribe.say(FIXED + "```")
    document = {"uri": "file:///a/b%20c/sum.py", "version": 12, "text": ADD}
    events = edit(quick.url, asked(document=document, stream=True))
    assert events[0]["document"]["version"] == 12
    assert events[0]["document"]["sha256"] == sha256(ADD)
    assert {event["uri"] for event in events} == {"file:///a/b%20c/sum.py"}
    prompt = scribe.tokenizer.decode(scribe.asked[-1])
    assert "File a/b c/sum.py:\n" in prompt


def test_an_answer_that_cannot_be_read_is_an_error_of_its_own(quick: Running, scribe: Scribe) -> None:
    """In a stream with the word that nothing is to be kept; else with a status that is not worth a retry."""
    scribe.say("I am sorry.")
    error = edit(quick.url, asked(stream=True))[-1]
    assert (error["type"], error["safe_to_keep"]) == ("error", False)
    response = post(quick.url, asked())
    assert (response.status_code, response.headers["x-should-retry"]) == (422, "false")
    assert response.json()["error"] == error["error"]
    assert error["error"]["code"] == "unreadable_answer"


def test_what_is_closed_when_the_model_fails_may_be_kept(loaded: LoadedModel) -> None:
    with running(Scribe(loaded, FIXED, ended=False), Settings()) as service:
        events = edit(service.url, asked(stream=True))
    assert (events[-1]["type"], events[-1]["safe_to_keep"]) == ("error", True)
    assert events[-1]["error"]["type"] == "server_error"
    assert apply(ADD, events) == FIXED


# Documents sent before.


def test_a_document_sent_before_is_named_by_its_hash(quick: Running, scribe: Scribe) -> None:
    """So is the result of an edit; the text may come along."""
    scribe.say(FIXED + "```")
    first = post(quick.url, asked()).json()
    by_hash = {"uri": "file:///a/sum.py", "base_sha256": sha256(ADD).upper()}
    assert post(quick.url, asked(document=by_hash)).json()["text"] == FIXED
    result = {"uri": "file:///a/sum.py", "base_sha256": first["result_sha256"]}
    assert post(quick.url, asked(document=result)).json()["finish_reason"] == "no_change"
    both = {"text": ADD, "base_sha256": sha256(ADD)}
    assert post(quick.url, asked(document=both)).json()["text"] == FIXED


@pytest.mark.parametrize("document", [{"base_sha256": "0" * 64}, {"text": ADD, "base_sha256": sha256(FIXED)}])
def test_a_hash_of_another_text_is_stale(quick: Running, document: dict[str, Any]) -> None:
    for stream in (True, False):
        response = post(quick.url, asked(document=document, stream=stream))
        assert (response.status_code, response.headers["x-should-retry"]) == (409, "false")
        error = response.json()["error"]
        assert (error["code"], error["param"]) == ("stale_document", "document.base_sha256")


def test_few_documents_are_kept_and_each_tenant_has_its_own() -> None:
    documents = Documents(max_bytes=400)
    first, second, third = (str(n) * 40 for n in range(3))
    for text in (first, second):
        documents.keep("a", text)
    assert documents.text_of("a", sha256(first)) == first
    documents.keep("a", third)
    documents.keep("a", "x" * 101)
    assert documents.text_of("a", sha256(first)) == first
    for tenant, text in (("a", second), ("b", first), ("a", "x" * 101)):
        with pytest.raises(ApiError, match="base_sha256"):
            documents.text_of(tenant, sha256(text))


def test_no_tenant_reaches_the_documents_and_edits_of_another(keyed: Running) -> None:
    own, foreign = ({"authorization": f"Bearer {key}"} for key in ("K1", "K2"))
    with Stream(keyed, slow_edit(), own) as stream:
        url = f"{keyed.url}/v1/edits/{stream.start['edit_id']}"
        assert httpx.delete(url, headers=foreign, timeout=120, trust_env=False).status_code == 404
        assert httpx.delete(url, timeout=120, trust_env=False).status_code == 401
        by_hash = asked(document={"base_sha256": sha256(LONG)})
        assert post(keyed.url, by_hash, headers=foreign).status_code == 409
        with Stream(keyed, slow_edit(), foreign) as other:
            assert stream.takes_another_event()
            assert httpx.delete(url, headers=own, timeout=120, trust_env=False).status_code == 200
            assert stream.rest()[-1]["finish_reason"] == "cancelled"
            assert other.takes_another_event()
    assert_idle(keyed)


# Edits that end early.


class Stream:
    """An edit whose events are read one by one; it is closed at the end of the context."""

    def __init__(self, service: Running, body: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        self._client = httpx.Client(trust_env=False, timeout=120, headers=headers)
        request = self._client.build_request("POST", f"{service.url}/v1/edits", json={**body, "stream": True})
        self._response = self._client.send(request, stream=True)
        assert self._response.status_code == 200
        self._lines = self._response.iter_lines()
        self.events: list[dict[str, Any]] = []
        self.start = self.next()

    def next(self) -> dict[str, Any]:
        for line in self._lines:
            if line.startswith("data: "):
                self.events.append(json.loads(line.removeprefix("data: ")))
                return self.events[-1]
        raise AssertionError("the stream has ended")

    def takes_another_event(self) -> bool:
        return self.next()["type"] in ("progress", "hunk")

    def rest(self) -> list[dict[str, Any]]:
        while self.events[-1]["type"] not in ("done", "error"):
            self.next()
        return self.events

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self._response.close()
        self._client.close()


@pytest.fixture(scope="module")
def slow_service(loaded: LoadedModel) -> Iterator[Running]:
    with running(SlowScribe(loaded, SLOW + "```"), Settings(max_sessions=4, max_waiting=2)) as one:
        yield one


def assert_ended_early(events: list[dict[str, Any]], reason: str) -> None:
    """With its first hunk, if that was closed, and the rest of the document as it was."""
    done = events[-1]
    assert (done["type"], done["finish_reason"], done["truncated"]) == ("done", reason, True)
    text = apply(LONG, events)
    assert text == (SLOW if done["hunks"] else LONG)
    assert done["result_sha256"] == sha256(text)


@pytest.mark.parametrize("line", [1, 10])
def test_a_cancelled_edit_ends_within_a_step(slow_service: Running, line: int) -> None:
    with Stream(slow_service, slow_edit()) as stream:
        while stream.next()["type"] != "progress" or stream.events[-1]["old_line"] < line:
            pass
        before = slow_service.runner.steps
        url = f"{slow_service.url}/v1/edits/{stream.start['edit_id']}"
        response = httpx.delete(url, timeout=120, trust_env=False)
        assert response.json() == {"edit_id": stream.start["edit_id"], "cancelled": True}
        assert_ended_early(stream.rest(), "cancelled")
        assert slow_service.runner.steps < before + 30
        assert stream.events[-1]["hunks"] == (line == 10)
        assert httpx.delete(url, timeout=120, trust_env=False).status_code == 404
    assert_idle(slow_service)


def test_a_newer_edit_of_the_document_makes_the_older_one_stale(slow_service: Running) -> None:
    """In a stream as in a reply of its own; an edit of another document goes on."""
    with Stream(slow_service, slow_edit("file:///other.py")) as other, Stream(slow_service, slow_edit()) as older:
        assert older.takes_another_event()
        reply: list[dict[str, Any]] = []
        thread = threading.Thread(
            target=lambda: reply.append(post(slow_service.url, {**slow_edit(), "stream": False}).json())
        )
        thread.start()
        assert_ended_early(older.rest(), "stale")
        with Stream(slow_service, slow_edit()) as newest:
            thread.join()
            assert (reply[0]["finish_reason"], reply[0]["truncated"]) == ("stale", True)
            assert reply[0]["text"] in (LONG, SLOW)
            assert newest.takes_another_event()
            assert other.takes_another_event()
    assert_idle(slow_service)


def test_documents_without_a_name_do_not_stop_each_other(slow_service: Running) -> None:
    with Stream(slow_service, slow_edit("")) as one, Stream(slow_service, slow_edit("")) as another:
        assert another.takes_another_event()
        assert one.takes_another_event()
    assert_idle(slow_service)


@pytest.mark.parametrize("stream", [True, False])
def test_work_stops_when_the_client_goes_away(slow_service: Running, stream: bool) -> None:
    before = slow_service.runner.steps
    with closing(send(slow_service, {**slow_edit(), "stream": stream}, "/v1/edits")) as sock:
        if stream:
            read_events(sock, 3)
        until(lambda: slow_service.runner.steps > before + 3)
    assert_idle(slow_service)
    assert httpx.delete(f"{slow_service.url}/v1/edits/edit-1", timeout=120, trust_env=False).status_code == 404


def test_an_edit_that_waits_for_its_turn_can_be_made_stale(loaded: LoadedModel) -> None:
    """Before the first token, and before its prompt is read."""
    settings = Settings(max_sessions=1, max_waiting=3)
    with (
        running(SlowScribe(loaded, SLOW + "```", max_sessions=1), settings) as service,
        Stream(service, slow_edit("file:///first.py")),
        Stream(service, slow_edit()) as waiting,
        Stream(service, slow_edit()) as newer,
    ):
        assert_ended_early(waiting.rest(), "stale")
        assert newer.start["edit_id"] != waiting.start["edit_id"]


def test_shutdown_tells_an_unfinished_edit(loaded: LoadedModel) -> None:
    with (
        running(SlowScribe(loaded, SLOW + "```"), Settings(grace_seconds=0.2)) as service,
        Stream(service, slow_edit()) as stream,
    ):
        assert stream.takes_another_event()
        service.server.should_exit = True
        error = stream.rest()[-1]
    assert (error["error"]["code"], error["safe_to_keep"]) == ("shutting_down", True)


# Where.

COLUMNS = 's = "😀é漢"; t = 1'


@pytest.mark.parametrize(
    ("line", "encoding", "before", "after"),
    [
        (COLUMNS, "utf-16", 12, 's = "😀é漢"; '),
        (COLUMNS, "utf-8", 17, 's = "😀é漢"; '),
        (COLUMNS, "utf-32", 11, 's = "😀é漢"; '),
        ("é = 1; t = 2", "utf-16", 7, "é = 1; "),
        ("é = 1; t = 2", "utf-8", 8, "é = 1; "),
        ("👩‍👩‍👧 t", "utf-16", 9, "👩‍👩‍👧 "),
        ("\tt", "utf-16", 1, "\t"),
        ("short", "utf-16", 99, "short"),
        ("short", "utf-8", 99, "short"),
    ],
)
def test_positions_are_counted_as_the_editor_does(
    quick: Running, scribe: Scribe, line: str, encoding: str, before: int, after: str
) -> None:
    """Behind the end of a line counts as its end."""
    scribe.say(f"a = 1\n{line}\n```")
    body = asked(f"a = 1\n{line}\n", cursor={"line": 1, "character": before}, position_encoding=encoding)
    del body["instruction"]
    assert post(quick.url, {**body, "edit_history": []}).json()["finish_reason"] == "no_change"
    prompt = scribe.tokenizer.decode(scribe.asked[-1])
    assert f"in line 2, at the bar: {after}|{line.removeprefix(after)}\n" in prompt


@pytest.mark.parametrize(("encoding", "character"), [("utf-16", 6), ("utf-8", 6), ("utf-8", 10)])
def test_a_position_within_a_character_is_refused(quick: Running, encoding: str, character: int) -> None:
    place = {"line": 0, "character": character}
    for fields in ({"cursor": place}, {"range": {"start": place, "end": {"line": 1, "character": 0}}}):
        response = post(quick.url, asked(COLUMNS + "\n", position_encoding=encoding, **fields))
        assert response.status_code == 400
        assert response.json()["error"]["param"] in ("cursor.character", "range.start.character")
        assert "position_encoding" in response.json()["error"]["message"]


@pytest.mark.parametrize(
    ("start", "end", "edited"),
    [
        ((2, 0), (4, 0), (2, 4)),
        ((2, 3), (3, 1), (2, 4)),
        ((2, 5), (2, 5), (2, 3)),
        ((0, 0), (8, 0), (0, 8)),
        ((8, 0), (8, 0), (7, 8)),
        ((2, 0), (2, 0), (2, 3)),
    ],
)
def test_a_range_is_widened_to_whole_lines(
    quick: Running, scribe: Scribe, start: tuple[int, int], end: tuple[int, int], edited: tuple[int, int]
) -> None:
    first, last = edited
    scribe.say("".join(ROWS.splitlines(keepends=True)[first:last]).replace("compute", "evaluate") + "```")
    (sl, sc), (el, ec) = start, end
    place = {"start": {"line": sl, "character": sc}, "end": {"line": el, "character": ec}}
    reply = post(quick.url, asked(ROWS, range=place)).json()
    assert reply["range"] == {"start_line": first, "end_line": last}
    assert reply["text"].splitlines() == [
        line.replace("compute", "evaluate") if first <= n < last else line for n, line in enumerate(ROWS.splitlines())
    ]


def test_a_document_too_long_for_the_model_is_narrowed_and_says_so(quick: Running, scribe: Scribe) -> None:
    text = "".join(f"def add_{n}(a, b):\n    for item in items:\n        print(item)\n\n\n" for n in range(200))
    scribe.say("def add_100(a, b):\n    for item in items:\n        print(item, 1)\n```")
    reply = post(quick.url, asked(text, cursor={"line": 501, "character": 4})).json()
    assert reply["narrowed"] is True
    assert reply["range"] == {"start_line": 500, "end_line": 503}
    assert reply["shown"]["start_line"] < 490
    assert reply["hunks"][0]["old"] == {"start_line": 502, "end_line": 503}
    error = post(quick.url, asked(text)).json()["error"]
    assert (error["code"], error["n_ctx"]) == ("context_length_exceeded", CONTEXT)


def test_other_files_are_shown(quick: Running, scribe: Scribe) -> None:
    scribe.say(FIXED + "```")
    reply = post(quick.url, asked(context=[{"uri": "file:///a/lib.go", "text": "package a\r\n"}])).json()
    assert reply["context_files"] == 1
    assert "File a/lib.go:\n```go\npackage a\n```\n\nFile a/sum.py:" in scribe.tokenizer.decode(scribe.asked[-1])


@pytest.mark.parametrize(
    ("text", "document"), [("", {"eol": "crlf"}), (ADD, {"eol": "lf", "bom": False, "final_newline": True})]
)
def test_what_an_editor_says_of_its_document_is_checked_or_used(
    quick: Running, scribe: Scribe, text: str, document: dict[str, Any]
) -> None:
    scribe.say("a = 1\nb = 2\n```" if not text else FIXED + "```")
    reply = post(quick.url, asked(document={"text": text, **document})).json()
    assert reply["document"]["eol"] == document["eol"]
    assert reply["text"] == ("a = 1\r\nb = 2\r\n" if not text else FIXED)


# What is refused.

BAD: list[tuple[dict[str, Any], str]] = [
    ({"document": None}, "document"),
    ({"document": "x"}, "document"),
    ({"document": {}}, "document.text"),
    ({"document": {"text": 5}}, "document.text"),
    ({"document": {"text": "a\0b"}}, "document.text"),
    ({"document": {"text": "a", "base_sha256": "xyz"}}, "document.base_sha256"),
    ({"document": {"text": "a", "path": "x"}}, "document.path"),
    ({"document": {"text": "a\n", "eol": "crlf"}}, "document.eol"),
    ({"document": {"text": "a\n", "eol": "nel"}}, "document.eol"),
    ({"document": {"text": "a\n", "bom": True}}, "document.bom"),
    ({"document": {"text": "a", "final_newline": True}}, "document.final_newline"),
    ({"document": {"text": "a", "version": [1]}}, "document.version"),
    ({"instruction": None}, "instruction"),
    ({"instruction": " "}, "instruction"),
    ({"instruction": 5}, "instruction"),
    ({"update": ""}, "update"),
    ({"mode": "apply"}, "update"),
    ({"mode": "rewrite"}, "mode"),
    ({"mode": "edit", "update": "x"}, "update"),
    ({"mode": "next_edit", "instruction": None}, "edit_history"),
    ({"edit_history": [], "cursor": {"line": 0, "character": 0}}, "instruction"),
    ({"edit_history": [], "instruction": None}, "cursor"),
    ({"edit_history": [5], "instruction": None}, "edit_history[0]"),
    ({"update": "x", "edit_history": []}, "edit_history"),
    ({"range": {"start": {"line": 1, "character": 0}}}, "range.end"),
    ({"range": {"start": {"line": 1, "character": 0}, "end": {"line": 0, "character": 9}}}, "range"),
    ({"range": lines(0, 9)}, "range.end.line"),
    ({"range": {"start": {"line": -1, "character": 0}, "end": {"line": 0, "character": 9}}}, "range.start.line"),
    ({"cursor": {"line": 9, "character": 0}}, "cursor.line"),
    ({"cursor": {"line": 0, "character": 1e18}}, "cursor.character"),
    ({"cursor": [0, 1]}, "cursor"),
    ({"position_encoding": "utf-7"}, "position_encoding"),
    ({"context": {"text": "x"}}, "context"),
    ({"context": [{"uri": "x"}]}, "context[0].text"),
    ({"context": [{"text": "a\0"}]}, "context[0].text"),
    ({"options": {"max_tokens": -1}}, "options.max_tokens"),
    ({"options": {"temperature": float("nan")}}, "options.temperature"),
    ({"options": {"temperature": -1}}, "temperature"),
    ({"options": {"top_p": 0}}, "top_p"),
    ({"options": {"seed": 2**64}}, "options.seed"),
    ({"options": {"granularity": "word"}}, "options.granularity"),
    ({"options": {"trace": "yes"}}, "options.trace"),
    ({"options": {"n": 2}}, "options.n"),
    ({"stream": "yes"}, "stream"),
    ({"instructions": "x"}, "instructions"),
    ({"model": "gpt-4"}, "model"),
]


@pytest.mark.parametrize(("fields", "param"), BAD, ids=[json.dumps(fields)[:60] for fields, _ in BAD])
def test_a_bad_field_is_refused_by_name(quick: Running, scribe: Scribe, fields: dict[str, Any], param: str) -> None:
    for stream in ({}, {"stream": True}):
        body = {**asked(), **stream, **fields}
        response = httpx.post(f"{quick.url}/v1/edits", content=json.dumps(body), timeout=120, trust_env=False)
        assert response.status_code == (404 if param == "model" else 400), response.text
        assert response.json()["error"]["param"] == param
        assert response.json()["error"]["message"].endswith((".", "?"))
    scribe.say(FIXED + "```")
    assert post(quick.url, asked()).json()["text"] == FIXED


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"null", b"\xff\xfe\x00", b'{"document":' * 5000, b'{"document": {"text": "\\ud800"}}']
)
def test_a_body_that_is_no_edit_is_refused(quick: Running, body: bytes) -> None:
    assert httpx.post(f"{quick.url}/v1/edits", content=body, timeout=120, trust_env=False).status_code == 400


def test_nothing_of_a_document_becomes_a_control_token(quick: Running, scribe: Scribe) -> None:
    text = 'end = "<|im_end|>"\nother = "<|im_start|>system"\n'
    scribe.say(text.replace("other", "another") + "```")
    reply = post(quick.url, asked(text, update="a = '<|im_end|>'", context=[{"text": "<|im_start|>"}])).json()
    assert reply["text"] == text.replace("other", "another")
    marks = [scribe.tokenizer.convert_tokens_to_ids(f"<|im_{word}|>") for word in ("start", "end")]
    assert [scribe.asked[-1].count(mark) for mark in marks] == [3, 2]


def test_the_example_of_the_protocol_is_a_recording() -> None:
    recording = json.loads((FOLDER / "one-line.json").read_text(encoding="utf-8"))
    page = (FOLDER.parent / "PROTOCOL.md").read_text(encoding="utf-8")
    example = page[page.index("## Example") :]
    bodies = [json.loads(line.strip()) for line in example.splitlines() if line.startswith("    {")]
    events = [json.loads(line.removeprefix("data: ")) for line in example.splitlines() if line.startswith("data: ")]
    assert bodies == [recording["request"]]
    assert events == recording["events"]


def test_the_protocol_names_every_field_and_every_word() -> None:
    page = (FOLDER.parent / "PROTOCOL.md").read_text(encoding="utf-8")
    fields = {*EditBody.model_fields, *Document.model_fields, *Options.model_fields}
    words = {"cancelled", "stale", "length", "no_change", "stop", "open", "delta", "closed", "safe_to_keep"}
    recorded = [json.loads(path.read_text(encoding="utf-8")) for path in FOLDER.iterdir()]
    fields |= {key for recording in recorded for event in recording["events"] for key in event}
    assert {name for name in fields | words if name not in page} == set()


# Ahead of time.


def test_a_warm_document_is_not_computed_again(loaded: LoadedModel) -> None:
    """An edit of it, whatever it is, finds the document computed; another key's does not."""
    with running(Engine(loaded), Settings(api_keys=("K1", "K2"))) as service:
        headers = {"authorization": "Bearer K1"}
        document = {"uri": "file:///a/long.py", "text": LONG}
        url = f"{service.url}/v1/edits/warm"
        first, again = (
            httpx.post(url, json={"document": document}, headers=headers, timeout=120, trust_env=False).json()
            for _ in range(2)
        )
        assert (first["object"], first["warm"], first["document"]["sha256"]) == ("edit.warm", True, sha256(LONG))
        tokens = first["usage"]["prompt_tokens"]
        assert first["usage"]["prompt_tokens_details"]["cached_tokens"] < 10
        assert again["usage"]["prompt_tokens_details"]["cached_tokens"] > tokens - 10
        short = {"document": {"uri": "file:///a/long.py", "base_sha256": sha256(LONG)}, "options": {"max_tokens": 3}}
        for key, least, most in (("K1", tokens - 10, tokens), ("K2", 0, 10)):
            body = {**short, "document": document if key == "K2" else short["document"], "instruction": "Fix it."}
            usage = post(service.url, body, headers={"authorization": f"Bearer {key}"}).json()["usage"]
            assert least <= usage["prompt_tokens_details"]["cached_tokens"] <= most


def test_an_edit_goes_before_the_warming_of_its_document(loaded: LoadedModel) -> None:
    """What is being computed ahead makes way."""
    engine = SlowEngine(loaded, prefill_chunk=16)
    with running(engine, Settings()) as service:
        body = {"document": {"uri": "file:///a/long.py", "text": LONG}}
        replies: list[Any] = []
        url = f"{service.url}/v1/edits/warm"
        thread = threading.Thread(
            target=lambda: replies.append(httpx.post(url, json=body, timeout=120, trust_env=False).json())
        )
        thread.start()
        until(lambda: service.runner.steps > 2)
        assert post(service.url, {**body, "instruction": "x", "options": {"max_tokens": 1}}).status_code in (200, 422)
        thread.join()
        assert replies[0]["warm"] is False


@pytest.mark.parametrize("fields", [{"document": None}, {"instruction": "x"}, {"document": {"text": "a\0"}}])
def test_what_cannot_be_warmed_is_refused(quick: Running, fields: dict[str, Any]) -> None:
    body = {"document": {"text": ADD}, **fields}
    response = httpx.post(f"{quick.url}/v1/edits/warm", json=body, timeout=120, trust_env=False)
    assert response.status_code == 400
    assert response.json()["error"]["param"] in ("document", "instruction", "document.text")

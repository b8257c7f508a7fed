"""``lookup-spec lsp`` over its pipes, with recorded edits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fakes.replay import RECORDINGS, Replay, replay

from tests.lsp.client import Client, position
from tests.server.tiny_service import until

ADD = "file:///project/one-line.py"
BASE: str = RECORDINGS["one-line"]["base"]
# What the command can ask for; the others need fields that it does not have.
PLAIN = {name: one for name, one in RECORDINGS.items() if "instruction" in one["request"]}


@pytest.fixture(scope="module")
def service() -> Iterator[Replay]:
    with replay() as one:
        yield one


@pytest.fixture(scope="module", params=["utf-16", "utf-8"])
def client(service: Replay, request: pytest.FixtureRequest) -> Iterator[Client]:
    with Client(service.url, request.param) as one:
        yield one
        assert one.close() == 0


@pytest.fixture(autouse=True)
def _as_usual(service: Replay) -> None:
    service.delay, service.fill, service.gone = 0.0, "a + b", 0
    service.bodies.clear()


def complete(line: int, character: int, uri: str = ADD) -> dict[str, Any]:
    return {
        "textDocument": {"uri": uri},
        "position": position(line, character),
        "context": {"triggerKind": 1},
    }


def test_the_server_says_what_it_can_do_and_counts_as_the_editor_does(client: Client) -> None:
    assert client.server["positionEncoding"] == client.encoding
    assert client.server["executeCommandProvider"]["commands"] == ["lookup-spec.edit"]
    assert client.server["inlineCompletionProvider"] is not None
    assert client.server["textDocumentSync"]["change"] == 2


@pytest.mark.parametrize("name", PLAIN)
def test_a_recorded_edit_makes_the_recorded_document(client: Client, name: str) -> None:
    """In one edit, of the version that was asked about; an answer that is no edit changes nothing and says why."""
    recording = PLAIN[name]
    uri = recording["request"]["document"]["uri"]
    client.open(uri, recording["base"])
    client.edits.clear()
    range_ = {"range": recording["request"]["range"]} if "range" in recording["request"] else {}
    reply = client.edit(uri=uri, instruction="Edit it.", version=1, **range_)
    end = recording["events"][-1]
    assert client.texts[uri] == recording["final"]
    if end["type"] == "error":
        assert reply["error"]["message"] == end["error"]["message"]
    else:
        reason = end["finish_reason"]
        applied = end["hunks"] > 0
        expected = {"applied": applied, "hunks": end["hunks"], "finish_reason": reason, "version": 1}
        assert reply["result"] == expected
    assert len(client.edits) == (recording["final"] != recording["base"])


def test_what_the_user_types_reaches_the_service(client: Client, service: Replay) -> None:
    """Changes count in the editor's units and end lines as the editor does; form feeds do not."""
    client.open(ADD, 's = "😀é\u2028漢"; x\x0c\r\nt = 1\ru')
    end = {"utf-16": 13, "utf-8": 20}[client.encoding]
    client.change(ADD, (0, end), (0, end + 1), "y")
    client.change(ADD, (1, 0), (2, 1), "v\nw")
    assert client.texts[ADD] == 's = "😀é\u2028漢"; y\x0c\r\nv\nw'
    client.edit(uri=ADD, instruction="Edit it.")
    assert service.bodies[-1][1]["document"]["text"] == client.texts[ADD]
    assert service.bodies[-1][1]["position_encoding"] == client.encoding


def test_an_edit_of_a_text_that_was_changed_meanwhile_is_never_applied(client: Client, service: Replay) -> None:
    service.delay = 0.1
    client.open(ADD, BASE)
    client.edits.clear()
    number = client.begin(
        "workspace/executeCommand",
        {"command": "lookup-spec.edit", "arguments": [{"uri": ADD, "instruction": "Edit it."}]},
    )
    until(lambda: bool(service.bodies))
    client.change(ADD, (0, 0), (0, 0), "# mine\n")
    assert client.answer(number)["error"]["code"] == -32801
    assert (client.edits, client.texts[ADD]) == ([], "# mine\n" + BASE)
    until(lambda: service.gone == 1)


def test_an_edit_of_another_version_than_the_user_saw_is_refused(client: Client, service: Replay) -> None:
    client.open(ADD, BASE)
    client.change(ADD, (0, 0), (0, 0), "# mine\n")
    assert client.edit(uri=ADD, instruction="Edit it.", version=1)["error"]["code"] == -32801
    assert service.bodies == []


def test_progress_is_told_and_the_request_can_be_cancelled(client: Client, service: Replay) -> None:
    service.delay = 0.1
    client.open(ADD, BASE)
    client.progress.clear()
    client.edits.clear()
    number = client.begin(
        "workspace/executeCommand",
        {"command": "lookup-spec.edit", "arguments": [{"uri": ADD, "instruction": "Edit it."}]},
    )
    until(lambda: any(one["value"]["kind"] == "report" for one in client.progress))
    client.tell("$/cancelRequest", {"id": number})
    assert client.answer(number)["error"]["code"] == -32800
    until(lambda: service.gone == 1)
    until(lambda: client.progress[-1]["value"]["kind"] == "end")
    assert (client.edits, client.texts[ADD]) == ([], BASE)
    assert client.progress[0]["value"] == {
        "kind": "begin", "title": "Edit it.", "percentage": 0, "cancellable": True
    }  # fmt: skip


def test_the_progress_bar_cancels_too(client: Client, service: Replay) -> None:
    service.delay = 0.1
    client.open(ADD, BASE)
    client.progress.clear()
    number = client.begin(
        "workspace/executeCommand",
        {"command": "lookup-spec.edit", "arguments": [{"uri": ADD, "instruction": "Edit it."}]},
    )
    until(lambda: bool(client.progress))
    client.tell("window/workDoneProgress/cancel", {"token": client.progress[0]["token"]})
    assert client.answer(number)["error"]["code"] == -32800
    assert client.texts[ADD] == BASE


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ({"instruction": "x"}, "uri"),
        ({"uri": ADD, "instruction": " "}, "instruction"),
        ({"uri": ADD, "instruction": "x", "rang": 1}, "rang"),
        ({"uri": "file:///closed.py", "instruction": "x"}, "not open"),
    ],
)
def test_a_wrong_argument_is_refused_by_name(client: Client, argument: dict[str, Any], said: str) -> None:
    client.open(ADD, BASE)
    error = client.edit(**argument)["error"]
    assert error["code"] == -32602
    assert said in error["message"]


def test_an_inline_completion_fills_in_at_the_cursor(client: Client, service: Replay) -> None:
    client.open(ADD, 'é = "😀"\ndef add(a, b):\n    return \n')
    end = {"utf-16": 8, "utf-8": 11}[client.encoding]
    reply = client.ask("textDocument/inlineCompletion", complete(2, 11))
    [item] = reply["result"]["items"]
    assert item["insertText"] == "a + b"
    assert item["range"] == {"start": position(2, 11), "end": position(2, 11)}
    body = service.bodies[-1][1]
    before, line, after = ('é = "😀"\ndef add(a, b):\n', "    return ", "\n")
    assert (body["input_prefix"], body["prompt"], body["input_suffix"]) == (before, line, after)
    client.ask("textDocument/inlineCompletion", complete(0, end))
    assert service.bodies[-1][1]["prompt"] == 'é = "😀"'


def test_a_newer_completion_ends_the_older_one(client: Client, service: Replay) -> None:
    service.delay = 0.3
    client.open(ADD, BASE)
    older = client.begin("textDocument/inlineCompletion", complete(0, 0))
    until(lambda: len(service.bodies) == 1)
    newer = client.begin("textDocument/inlineCompletion", complete(1, 0))
    assert client.answer(older)["error"]["code"] == -32800
    assert client.answer(newer)["result"]["items"]


@pytest.mark.parametrize("fill", [None, "", " \n"])
def test_a_completion_that_cannot_be_had_is_none(client: Client, service: Replay, fill: str | None) -> None:
    """Also where the model cannot fill in: nobody is told while typing."""
    service.fill = fill
    client.open(ADD, BASE)
    assert client.ask("textDocument/inlineCompletion", complete(1, 4))["result"] is None


def test_without_a_service_completions_are_silent_and_edits_say_what_to_do() -> None:
    with Client("http://127.0.0.1:9") as client:
        client.open(ADD, BASE)
        assert client.ask("textDocument/inlineCompletion", complete(1, 4))["result"] is None
        assert "lookup-spec serve" in client.edit(uri=ADD, instruction="x")["error"]["message"]
        assert client.close() == 0

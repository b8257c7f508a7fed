"""Clients of Morph, Mercury, Mistral and Tabby, unchanged: their bodies in, the replies that they read out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fakes.scribe import Scribe
from lookup_server.editors.forms import mercury_edit, morph_apply
from lookup_server.settings import Settings

from lookup_spec.model.load import LoadedModel
from lookup_spec.pipeline.engine import Engine
from lookup_spec.text.edit_task import NextEdit, Update
from tests.server.test_llamacpp import FIM
from tests.server.tiny_service import running, tiny_model

CODE = "".join(f"def add_{k}(a, b):\n    return a + b + {k}\n\n\n" for k in range(8)).rstrip("\n")
NEW = CODE.replace("add_3(a, b)", "plus(a, b)")
SNIPPET = "# ... existing code ...\ndef plus(a, b):\n# ... existing code ..."
MORPH = f"<instruction>rename add_3</instruction>\n<code>{CODE}</code>\n<update>{SNIPPET}</update>"
APPLY = f"<|original_code|>\n{CODE}\n<|/original_code|>\n\n<|update_snippet|>\n{SNIPPET}\n<|/update_snippet|>"
REGION = "total = add_1(1, 2)\nprint(total)"


def next_edit(region: str, above: str = "import add\n\n", below: str = "\n# end\n") -> str:
    return (
        "<|recently_viewed_code_snippets|>\n<|recently_viewed_code_snippet|>\ncode_snippet_file_path: b.py\nx = 1\n"
        "<|/recently_viewed_code_snippet|>\n<|/recently_viewed_code_snippets|>\n\n<|current_file_content|>\n"
        f"current_file_path: a.py\n{above}<|code_to_edit|>\n{region}\n<|/code_to_edit|>{below}"
        "<|/current_file_content|>\n\n"
        "<|edit_diff_history|>\n--- a.py\n+++ a.py\n@@ -1 +1 @@\n-a\n+b\n<|/edit_diff_history|>"
    )


def user(content: str, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content}], **more}


@pytest.fixture(scope="module")
def scribe(loaded: LoadedModel) -> Scribe:
    return Scribe(loaded, f"{NEW}\n```")


@pytest.fixture(scope="module")
def editor(scribe: Scribe) -> Iterator[httpx.Client]:
    with (
        running(scribe, Settings()) as service,
        httpx.Client(base_url=service.url, timeout=120, trust_env=False) as client,
    ):
        yield client


def streamed(client: httpx.Client, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    text = client.post(path, json={**body, "stream": True}).raise_for_status().text
    *events, done, end = text.split("\n\n")
    assert (done, end) == ("data: [DONE]", "")
    return [json.loads(event.removeprefix("data: ")) for event in events]


@pytest.mark.parametrize(
    ("path", "content"),
    [("/v1/chat/completions", MORPH), ("/v1/apply/completions", APPLY), ("/apply/completions", APPLY)],
)
def test_an_update_is_merged_in_and_the_reply_is_the_file(
    scribe: Scribe, editor: httpx.Client, path: str, content: str
) -> None:
    """Without fences, streamed or not, and with what the prediction from the prompt brought."""
    scribe.say(f"{NEW}\n```")
    reply = editor.post(path, json=user(content)).raise_for_status().json()
    [choice] = reply["choices"]
    assert choice["message"]["content"] == NEW
    assert (choice["finish_reason"], reply["object"]) == ("stop", "chat.completion")
    details = reply["usage"]["completion_tokens_details"]
    assert details["accepted_prediction_tokens"] > 0.7 * reply["usage"]["completion_tokens"]
    assert details["rejected_prediction_tokens"] == 0
    chunks = streamed(editor, path, user(content, stream_options={"include_usage": True}))
    assert "".join(one["delta"].get("content", "") for chunk in chunks for one in chunk["choices"]) == NEW
    assert [one["finish_reason"] for chunk in chunks for one in chunk["choices"] if one["finish_reason"]] == ["stop"]
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["total_tokens"] == reply["usage"]["total_tokens"]


def test_a_cut_answer_says_so_and_keeps_the_rest_of_the_file(scribe: Scribe, editor: httpx.Client) -> None:
    scribe.say(f"{NEW}\n```")
    [choice] = editor.post("/v1/apply/completions", json=user(APPLY, max_tokens=80)).json()["choices"]
    assert choice["finish_reason"] == "length"
    assert choice["message"]["content"].endswith("return a + b + 7")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("total = plus(1, 2)\nprint(total)\n```", "```\ntotal = plus(1, 2)\nprint(total)\n```"),
        (f"{REGION}\n```", "None"),
    ],
)
def test_the_next_edit_comes_in_fences_or_is_the_word_none(
    scribe: Scribe, editor: httpx.Client, said: str, told: str
) -> None:
    scribe.say(said)
    body = user(next_edit(REGION.replace("(1", "(<|cursor|>1")))
    [choice] = editor.post("/v1/edit/completions", json=body).raise_for_status().json()["choices"]
    assert choice["message"]["content"] == told
    chunks = streamed(editor, "/v1/edit/completions", body)
    assert "".join(one["delta"].get("content", "") for chunk in chunks for one in chunk["choices"]) == told


def test_tabbys_next_edit_is_the_whole_new_version(scribe: Scribe, editor: httpx.Client) -> None:
    scribe.say("total = plus(1, 2)\nprint(total)\n```")
    history = {"original_code": "", "edits_diff": "-a\n+b", "current_version": REGION}
    segments = {"prefix": "", "filepath": "a.py", "edit_history": history}
    body = {"language": "python", "mode": "next_edit_suggestion", "segments": segments}
    reply = editor.post("/v1/completions", json=body).raise_for_status().json()
    assert reply["choices"] == [{"index": 0, "text": "total = plus(1, 2)\nprint(total)"}]
    assert (reply["mode"], set(reply)) == ("next_edit_suggestion", {"id", "choices", "mode", "usage"})
    assert reply["usage"]["completion_tokens_details"]["accepted_prediction_tokens"] > 0


@pytest.fixture(scope="module")
def filler() -> Iterator[httpx.Client]:
    with (
        running(Engine(tiny_model(FIM)), Settings()) as one,
        httpx.Client(base_url=one.url, timeout=120, trust_env=False) as client,
    ):
        yield client


def test_mistrals_and_tabbys_clients_fill_in_what_a_suffix_asks_for(filler: httpx.Client) -> None:
    """All three forms put the same to the model, and each finds the text where it reads it."""
    before, after = "def add(a, b):\n    ", "\n\nprint(add(1, 2))\n"
    common = {"max_tokens": 64, "temperature": 0}
    plain = filler.post("/v1/completions", json={"prompt": before, "suffix": after, **common}).json()
    text = plain["choices"][0]["text"]
    assert text
    body = {"prompt": before, "suffix": after, **common, "random_seed": 3}
    [choice] = filler.post("/v1/fim/completions", json=body).raise_for_status().json()["choices"]
    assert choice["message"]["content"] == choice["text"] == text
    chunks = streamed(filler, "/v1/fim/completions", body)
    assert "".join(one["delta"].get("content", "") for chunk in chunks for one in chunk["choices"]) == text
    tabby = {"language": "python", "segments": {"prefix": before, "suffix": after}, "user": "u"}
    reply = filler.post("/v1/completions", json=tabby).raise_for_status().json()
    assert reply["choices"] == [{"index": 0, "text": text}]
    assert reply["mode"] == "standard"


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/v1/apply/completions", user("merge this"), "messages"),
        ("/v1/edit/completions", user(APPLY), "messages"),
        ("/v1/apply/completions", user(APPLY, n=2), "n"),
        ("/v1/apply/completions", user(APPLY.replace("add_3", "\0")), "messages"),
        ("/v1/completions", {"segments": {"suffix": "x"}}, "segments.prefix"),
        ("/v1/completions", {"segments": {"prefix": "x"}, "mode": "next_edit_suggestion"}, "segments.edit_history"),
        ("/v1/completions", {"prompt": "\"segments\"", "segment": 1}, "segment"),
        ("/v1/fim/completions", {"suffix": "x"}, "prompt"),
    ],
)  # fmt: skip
def test_what_has_not_the_form_is_refused_by_name(
    editor: httpx.Client, path: str, body: dict[str, Any], param: str
) -> None:
    refused = editor.post(path, json=body)
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, param)


@pytest.mark.parametrize(
    "content", [f"Please apply:\n{MORPH}", MORPH.replace("</update>", ""), MORPH.replace(SNIPPET, " ")]
)
def test_a_chat_that_has_not_quite_morphs_form_is_a_chat(scribe: Scribe, editor: httpx.Client, content: str) -> None:
    scribe.say("hello")
    [choice] = editor.post("/v1/chat/completions", json=user(content)).json()["choices"]
    assert choice["message"]["content"] == "hello"


def test_forms_are_read_as_they_were_meant() -> None:
    """Marks on lines of their own are not part of the text, nor is the cursor, and marks within the text are."""
    asked = morph_apply("<instructions>do</instructions>\n<code>\n<code>a</code>\n</code>\n<update>\nb\n</update>")
    assert asked is not None
    assert (asked.text, asked.task) == ("<code>a</code>", Update("b", "do"))
    edit = mercury_edit(next_edit("a\nb<|cursor|>c", above="x\n", below="\ny\n"))
    assert edit is not None
    assert (edit.text, edit.path, edit.lines) == ("x\na\nbc\ny\n", "a.py", (1, 3))
    assert isinstance(edit.task, NextEdit)
    assert edit.task.cursor == (2, 1)
    assert edit.task.history == ("--- a.py\n+++ a.py\n@@ -1 +1 @@\n-a\n+b",)
    assert [(other.path, other.lines) for other in edit.others] == [("b.py", ("x = 1\n",))]

"""Bodies as editors send them, and what each reads of the reply: Zed, Continue, llama.vscode, avante with Morph."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fakes.scribe import Scribe
from lookup_server.settings import Settings

from lookup_spec.model.load import LoadedModel
from tests.server.tiny_service import running
from tests.text.test_layouts import chatml, sweep, zeta_1, zeta_2

CODE = "".join(f"def add_{k}(a, b):\n    return a + b + {k}\n\n\n" for k in range(6)).rstrip("\n")
NEW = CODE.replace("add_3(a, b)", "plus(a, b)")


@pytest.fixture(scope="module")
def scribe(loaded: LoadedModel) -> Scribe:
    return Scribe(loaded, NEW)


@pytest.fixture(scope="module")
def editor(scribe: Scribe) -> Iterator[httpx.Client]:
    names = ("default", "zeta2,temperature=0", "morph-v3-large", "Fast-Apply")
    with (
        running(scribe, Settings(served_names=names)) as service,
        httpx.Client(base_url=service.url, timeout=120, trust_env=False) as client,
    ):
        yield client


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/completions/", "/completions"])
@pytest.mark.parametrize(
    ("prompt", "end"),
    [
        (zeta_1(CODE), "\n<|editable_region_end|>"),
        (zeta_2(CODE), "\n>>>>>>> UPDATED\n"),
        (sweep(CODE), "<|file_sep|>"),
    ],
)
def test_zed_finds_every_field_that_it_needs(
    scribe: Scribe, editor: httpx.Client, path: str, prompt: str, end: str
) -> None:
    """It sends no temperature and no stream, and at most four stops; the region that it showed is what is proposed."""
    scribe.say(f"{NEW}{end}rest")
    body = {"model": "zeta2", "prompt": prompt, "max_tokens": 1024, "stop": [end, "</s>", "\n\n\n\n", "<|endoftext|>"]}
    reply = editor.post(path, json=body).raise_for_status().json()
    assert {"id", "object", "created", "model", "choices", "usage"} <= set(reply)
    assert (reply["object"], reply["model"]) == ("text_completion", "zeta2")
    assert reply["choices"][0]["text"] == NEW
    usage = reply["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert usage["completion_tokens_details"]["accepted_prediction_tokens"] > usage["completion_tokens"] / 2


def deltas(text: str) -> list[dict[str, Any]]:
    """The way Continue reads a stream: line by line, ending with the word DONE."""
    found = []
    for line in text.split("\n"):
        if line.startswith(": ping"):
            break
        if line.startswith("data: ") and not line.startswith("data: [DONE]"):
            found.append(json.loads(line.removeprefix("data: ")))
    return found


def test_continue_completes_with_a_prompt_of_its_own_and_many_stops(scribe: Scribe, editor: httpx.Client) -> None:
    scribe.say("return a\n```\nmore")
    stops = ["<|endoftext|>", "<|fim_prefix|>", "/src/", "#- coding: utf-8", "```", "\n\n", "\r\n\r\n", "def test"]
    prompt = "<|fim_prefix|>def add(a):\n    <|fim_suffix|>\n<|fim_middle|>"
    body = {"model": "default", "prompt": prompt, "max_tokens": 256, "temperature": 0.01, "stop": stops, "stream": True}
    chunks = deltas(editor.post("/v1/completions", json=body).raise_for_status().text)
    assert "".join(chunk["choices"][0]["text"] for chunk in chunks if chunk["choices"]) == "return a\n"


def test_continue_applies_with_a_fence_that_it_has_opened(scribe: Scribe, editor: httpx.Client) -> None:
    scribe.say(f"{NEW}\n```")
    asked = (
        f"ORIGINAL CODE:\n```\n{CODE}\n```\n\nSUGGESTED EDIT:\n```\ndef plus(a, b):\n```\n\nApply the SUGGESTED EDIT."
    )
    body = {
        "model": "Fast-Apply",
        "messages": [{"role": "user", "content": asked}, {"role": "assistant", "content": "```\n"}],
        "max_tokens": 4096,
        "temperature": 0.01,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    chunks = deltas(editor.post("/v1/chat/completions", json=body).raise_for_status().text)
    text = "".join(choice["delta"].get("content", "") for chunk in chunks for choice in chunk["choices"])
    assert text == f"{NEW}\n```"
    details = chunks[-1]["usage"]["completion_tokens_details"]
    assert details["accepted_prediction_tokens"] > chunks[-1]["usage"]["completion_tokens"] / 2


def test_llama_vscode_edits_a_selection(scribe: Scribe, editor: httpx.Client) -> None:
    """Its chat has llama.cpp's fields in it, and no stream."""
    scribe.say(f"```python\n{NEW}\n```")
    asked = (
        "Modify the following original code according to the instructions. Output only the modified code. "
        f"No explanations.\n\ninstructions:\nrename\n\noriginal code:\n{CODE}\n\nmodified code:"
    )
    body = {
        "messages": [{"role": "user", "content": asked}],
        "id_slot": 0,
        "samplers": ["top_k", "top_p"],
        "stream": False,
        "cache_prompt": True,
        "temperature": 0.8,
        "top_p": 0.95,
    }
    reply = editor.post("/v1/chat/completions", json=body).raise_for_status().json()
    assert reply["choices"][0]["message"]["content"] == f"```python\n{NEW}\n```"


@pytest.mark.parametrize("tag", ["instruction", "instructions"])
def test_avante_sends_morphs_form_and_puts_the_reply_into_the_file(
    scribe: Scribe, editor: httpx.Client, tag: str
) -> None:
    scribe.say(f"{NEW}\n```")
    update = "# ... existing code ...\ndef plus(a, b):\n# ... existing code ..."
    content = f"<{tag}>rename</{tag}>\n<code>{CODE}</code>\n<update>{update}</update>"
    body = {"model": "morph-v3-large", "messages": [{"role": "user", "content": content}], "stream": True}
    chunks = deltas(editor.post("/v1/chat/completions", json=body).raise_for_status().text)
    assert "".join(choice["delta"].get("content", "") for chunk in chunks for choice in chunk["choices"]) == NEW


def test_a_client_that_renders_the_chat_itself_has_the_same_answer(scribe: Scribe, editor: httpx.Client) -> None:
    scribe.say(f"```\n{NEW}\n```")
    messages = [{"role": "user", "content": f"Rename add_3.\n```\n{CODE}\n```"}]
    chat = editor.post("/v1/chat/completions", json={"messages": messages, "max_tokens": 2000}).json()
    text = editor.post("/v1/completions", json={"prompt": chatml(*messages), "max_tokens": 2000}).json()
    assert chat["choices"][0]["message"]["content"] == text["choices"][0]["text"] == f"```\n{NEW}\n```"
    assert chat["usage"]["prompt_tokens"] == text["usage"]["prompt_tokens"]

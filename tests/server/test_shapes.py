"""The wire shapes of both APIs, as unchanged OpenAI clients read them."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "say add"}], "max_tokens": 12}
TEXT: dict[str, Any] = {"prompt": "def add(a, b):\n", "max_tokens": 12}
BOTH = [("/v1/chat/completions", CHAT), ("/v1/completions", TEXT)]


def post(client: httpx.Client, path: str, body: dict[str, Any]) -> Any:
    response = client.post(path, json=body)
    assert response.status_code == 200, response.text
    return response.json()


def events(client: httpx.Client, path: str, body: dict[str, Any]) -> list[Any]:
    response = client.post(path, json={**body, "stream": True})
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.text.endswith("data: [DONE]\n\n")
    blocks = response.text.removesuffix("data: [DONE]\n\n").split("\n\n")
    assert blocks.pop() == ""
    return [json.loads(block.removeprefix("data: ")) for block in blocks]


def streamed_text(chunks: list[Any], index: int = 0) -> str:
    choices = [choice for chunk in chunks for choice in chunk["choices"] if choice["index"] == index]
    return "".join(one["delta"].get("content", "") if "delta" in one else one["text"] for one in choices)


def text_of(reply: Any, index: int = 0) -> str:
    choice = reply["choices"][index]
    return choice["text"] if "text" in choice else choice["message"]["content"]


@pytest.mark.parametrize(("path", "body"), BOTH)
@pytest.mark.parametrize("settings", [{"temperature": 0}, {"temperature": 1, "seed": 5}, {"seed": 7, "n": 3}])
def test_stream_and_whole_reply_have_the_same_text(
    client: httpx.Client, path: str, body: dict[str, Any], settings: dict[str, Any]
) -> None:
    body = {**body, **settings}
    whole, chunks = post(client, path, body), events(client, path, body)
    for index in range(settings.get("n", 1)):
        assert streamed_text(chunks, index) == text_of(whole, index) != ""


@pytest.mark.parametrize(("path", "body"), BOTH)
@pytest.mark.parametrize("settings", [{"temperature": 0}, {"temperature": 0.9, "seed": 3, "top_p": 0.9}])
def test_speculation_never_changes_the_text(
    client: httpx.Client, path: str, body: dict[str, Any], settings: dict[str, Any]
) -> None:
    body = {**body, **settings, "max_tokens": 100}
    texts = {text_of(post(client, path, {**body, "speculation": on})) for on in (True, False)}
    assert len(texts) == 1


def test_chat_chunks_are_role_then_content_then_finish_then_usage(client: httpx.Client) -> None:
    chunks = events(client, *BOTH[0][:1], {**CHAT, "temperature": 0, "stream_options": {"include_usage": True}})
    first, *middle, last, usage = chunks
    assert first["choices"] == [
        {"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}
    ]
    assert all(set(chunk["choices"][0]["delta"]) == {"content"} for chunk in middle)
    assert last["choices"] == [{"index": 0, "delta": {}, "logprobs": None, "finish_reason": "length"}]
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens"] == 12
    assert all(chunk["usage"] is None for chunk in chunks[:-1])
    assert len({(chunk["id"], chunk["created"], chunk["model"], chunk["object"]) for chunk in chunks}) == 1
    assert first["object"] == "chat.completion.chunk"
    assert first["id"].startswith("chatcmpl-")
    assert first["system_fingerprint"].startswith("fp_")


def test_a_stream_without_options_has_no_usage(client: httpx.Client) -> None:
    assert not any("usage" in chunk for chunk in events(client, "/v1/chat/completions", CHAT))


def test_completion_chunks_have_the_shape_of_the_whole_reply(client: httpx.Client) -> None:
    chunks = events(client, "/v1/completions", {**TEXT, "temperature": 0, "stream_options": {"include_usage": True}})
    assert {chunk["object"] for chunk in chunks} == {"text_completion"}
    assert all(set(chunk["choices"][0]) == {"index", "text", "logprobs", "finish_reason"} for chunk in chunks[:-1])
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks[:-1]][-1] == "length"
    assert chunks[-1]["choices"] == []


@pytest.mark.parametrize(("path", "body"), BOTH)
@pytest.mark.parametrize("n", [1, 3])
def test_total_tokens_is_prompt_and_completion_tokens(
    client: httpx.Client, path: str, body: dict[str, Any], n: int
) -> None:
    usage = post(client, path, {**body, "n": n, "ignore_eos": True})["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert usage["completion_tokens"] == 12 * n
    assert usage["prompt_tokens"] == post(client, path, body)["usage"]["prompt_tokens"]


def test_whole_chat_reply_has_every_field_clients_need(client: httpx.Client) -> None:
    reply = post(client, "/v1/chat/completions", CHAT)
    assert reply["object"] == "chat.completion"
    choice = reply["choices"][0]
    assert set(choice) == {"index", "message", "logprobs", "finish_reason"}
    assert set(choice["message"]) == {"role", "content", "refusal"}
    assert choice["message"]["refusal"] is choice["logprobs"] is None


def test_json_is_compact_and_on_one_line(client: httpx.Client) -> None:
    """But for what some take for the end of a line, characters stand there as they are."""
    response = client.post("/v1/completions", json=TEXT)
    compact = json.dumps(response.json(), separators=(",", ":"), ensure_ascii=False)
    for end in "\u2028\u2029\x85":
        compact = compact.replace(end, f"\\u{ord(end):04x}")
    assert response.text == compact
    assert "\n" not in response.text


def test_line_separators_in_an_answer_do_not_split_an_event(client: httpx.Client) -> None:
    text = "a\u2028b\u2029c\x85d\r\n"
    response = client.post("/v1/completions", json={"prompt": text, "echo": True, "max_tokens": 1, "stream": True})
    assert not set("\u2028\u2029\x85\r") & set(response.text)
    first = json.loads(response.text.split("\n\n")[0].removeprefix("data: "))
    assert first["choices"][0]["text"] == text


@pytest.mark.parametrize("name", [None, "", "tiny"])
def test_no_model_name_means_the_default(client: httpx.Client, name: str | None) -> None:
    assert post(client, "/v1/completions", {**TEXT, "model": name})["model"] == "tiny"


def test_aliases_answer_under_their_own_name(client: httpx.Client) -> None:
    assert post(client, "/v1/completions", {**TEXT, "model": "org/alias"})["model"] == "org/alias"


@pytest.mark.parametrize("path", ["/completions", "/v1/completions/", "/completions/"])
def test_common_misspellings_of_the_path_work(client: httpx.Client, path: str) -> None:
    assert post(client, path, TEXT)["object"] == "text_completion"


def test_models_are_listed_with_their_context(client: httpx.Client) -> None:
    cards = client.get("/v1/models").json()
    assert cards["object"] == "list"
    assert [card["id"] for card in cards["data"]] == ["tiny", "org/alias"]
    assert client.get("/v1/models/org/alias").json()["max_model_len"] == 2048
    assert client.get("/v1/models/other").json()["error"]["code"] == "model_not_found"


@pytest.mark.parametrize("path", ["/health", "/v1/health"])
def test_health_is_ok_while_requests_are_let_in(client: httpx.Client, path: str) -> None:
    assert (client.get(path).status_code, client.get(path).json()) == (200, {"status": "ok"})


def test_list_prompts_are_answered_in_order(client: httpx.Client) -> None:
    """Choice ``k`` of prompt ``p`` has the index ``p * n + k``."""
    prompts = ["def add", "for item"]
    body = {"seed": 1, "echo": True, "max_tokens": 8}
    reply = post(client, "/v1/completions", {**body, "prompt": prompts, "n": 2})
    assert [choice["index"] for choice in reply["choices"]] == [0, 1, 2, 3]
    assert [text_of(reply, k).startswith(prompts[k // 2]) for k in range(4)] == [True] * 4
    alone = post(client, "/v1/completions", {**body, "prompt": prompts[1]})
    assert text_of(reply, 2) == text_of(alone)


def test_token_prompts_equal_their_text(client: httpx.Client, service: Any) -> None:
    ids = list(service.runner.engine.prompts.encode("def add(a, b):\n"))
    body = {"max_tokens": 8, "temperature": 0, "echo": True}
    text = post(client, "/v1/completions", {**body, "prompt": "def add(a, b):\n"})
    for prompt in (ids, [ids]):
        assert text_of(post(client, "/v1/completions", {**body, "prompt": prompt})) == text_of(text)


@pytest.mark.parametrize("echo", [True, False])
def test_max_tokens_zero_gives_no_token(client: httpx.Client, echo: bool) -> None:
    reply = post(client, "/v1/completions", {"prompt": "for item", "max_tokens": 0, "echo": echo})
    assert text_of(reply) == ("for item" if echo else "")
    assert reply["usage"]["completion_tokens"] == 0
    assert reply["choices"][0]["finish_reason"] == "length"


def test_sixteen_tokens_is_the_default_of_text_completions(client: httpx.Client) -> None:
    reply = post(client, "/v1/completions", {"prompt": "for item", "max_tokens": None, "ignore_eos": True})
    assert reply["usage"]["completion_tokens"] == 16


@pytest.mark.parametrize("settings", [{"max_tokens": 8}, {"max_completion_tokens": 8, "max_tokens": 50}])
def test_the_newer_name_of_the_token_limit_wins(client: httpx.Client, settings: dict[str, Any]) -> None:
    body = {**CHAT, "ignore_eos": True, **settings}
    assert post(client, "/v1/chat/completions", body)["usage"]["completion_tokens"] == 8


@pytest.mark.parametrize("as_list", [True, False])
@pytest.mark.parametrize(("path", "body"), BOTH)
def test_a_stop_string_ends_the_answer_and_is_no_part_of_it(
    client: httpx.Client, path: str, body: dict[str, Any], as_list: bool
) -> None:
    body = {**body, "temperature": 0, "ignore_eos": True, "max_tokens": 60}
    full = text_of(post(client, path, body))
    stop = full[9:12]
    body["stop"] = [stop, "", *(f"never {k}" for k in range(20))] if as_list else stop
    reply, chunks = post(client, path, body), events(client, path, body)
    assert text_of(reply) == full[: full.index(stop)] == streamed_text(chunks)
    assert reply["choices"][0]["finish_reason"] == "stop" == chunks[-1]["choices"][0]["finish_reason"]


def test_completion_logprobs_have_the_classic_shape(client: httpx.Client) -> None:
    body = {**TEXT, "temperature": 0, "logprobs": 2}
    reply, chunks = post(client, "/v1/completions", body), events(client, "/v1/completions", body)
    logprobs = reply["choices"][0]["logprobs"]
    assert {name: len(values) for name, values in logprobs.items()} == dict.fromkeys(logprobs, 12)
    assert list(logprobs) == ["tokens", "token_logprobs", "top_logprobs", "text_offset"]
    for token, logprob, top in zip(*list(logprobs.values())[:3], strict=True):
        assert top[token] == logprob == max(top.values()) < 0
    assert logprobs["text_offset"][0] == 0
    parts = [choice["logprobs"] for chunk in chunks for choice in chunk["choices"] if choice["logprobs"]]
    streamed = {name: [value for part in parts for value in part[name]] for name in logprobs}
    # How many tokens share a pass follows the clock, and with it the last digits of float32 numbers.
    assert (streamed["tokens"], streamed["text_offset"]) == (logprobs["tokens"], logprobs["text_offset"])
    assert streamed["token_logprobs"] == pytest.approx(logprobs["token_logprobs"], abs=1e-4)
    for one, other in zip(streamed["top_logprobs"], logprobs["top_logprobs"], strict=True):
        assert one == pytest.approx(other, abs=1e-4)


def test_text_offsets_are_where_whole_tokens_stand(client: httpx.Client) -> None:
    reply = post(client, "/v1/completions", {**TEXT, "temperature": 0, "logprobs": 0, "max_tokens": 60})
    choice = reply["choices"][0]
    assert choice["logprobs"]["top_logprobs"] is None
    text, logprobs = choice["text"], choice["logprobs"]
    whole = [
        (token, text[offset:])
        for token, offset in zip(logprobs["tokens"], logprobs["text_offset"], strict=True)
        if not token.startswith("bytes:")
    ]
    assert whole
    # An unfinished character before a token comes out as U+FFFD together with it.
    assert all(rest.lstrip("\ufffd").startswith(token) for token, rest in whole)


def test_chat_logprobs_have_an_entry_for_each_token(client: httpx.Client) -> None:
    body = {**CHAT, "temperature": 0, "logprobs": True, "top_logprobs": 3}
    reply, chunks = post(client, "/v1/chat/completions", body), events(client, "/v1/chat/completions", body)
    content = reply["choices"][0]["logprobs"]["content"]
    assert len(content) == reply["usage"]["completion_tokens"]
    assert bytes(byte for entry in content for byte in entry["bytes"]).decode(errors="replace") == text_of(reply)
    for entry in content:
        assert entry["top_logprobs"][0] == {key: entry[key] for key in ("token", "logprob", "bytes")}
        assert len(entry["top_logprobs"]) == 3
    parts = [choice["logprobs"] for chunk in chunks for choice in chunk["choices"] if choice["logprobs"]]
    streamed = [entry for part in parts for entry in part["content"]]
    assert [entry["bytes"] for entry in streamed] == [entry["bytes"] for entry in content]
    # Drafts differ from one request to the next, and with them the rounding.
    assert [entry["logprob"] for entry in streamed] == pytest.approx([entry["logprob"] for entry in content], abs=1e-5)


@pytest.mark.parametrize("as_parts", [True, False])
def test_a_prediction_changes_the_usage_but_never_the_answer(client: httpx.Client, as_parts: bool) -> None:
    body = {**CHAT, "temperature": 0, "max_tokens": 100, "ignore_eos": True}
    plain = post(client, "/v1/chat/completions", body)
    guess = text_of(plain)
    content: Any = [{"type": "text", "text": guess}] if as_parts else guess
    reply = post(client, "/v1/chat/completions", {**body, "prediction": {"type": "content", "content": content}})
    assert text_of(reply) == text_of(plain)
    details = reply["usage"]["completion_tokens_details"]
    accepted, rejected = details["accepted_prediction_tokens"], details["rejected_prediction_tokens"]
    assert accepted >= 0 <= rejected
    assert accepted + rejected > 0
    assert "accepted_prediction_tokens" not in plain["usage"]["completion_tokens_details"]


def test_a_last_assistant_message_is_continued(client: httpx.Client, service: Any) -> None:
    messages = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "for item in"}]
    reply = post(client, "/v1/chat/completions", {"messages": messages, "temperature": 0, "max_tokens": 10})
    prompt = "<|im_start|>user\ngo<|im_end|>\n<|im_start|>assistant\nfor item in"
    raw = post(client, "/v1/completions", {"prompt": prompt, "temperature": 0, "max_tokens": 10})
    assert text_of(reply) == text_of(raw)
    assert reply["usage"] | {"prompt_tokens": len(service.runner.engine.prompts.encode(prompt))} == reply["usage"]


def test_text_parts_and_developer_messages_are_read(client: httpx.Client) -> None:
    messages = [
        {"role": "developer", "content": "be brief", "name": "boss"},
        {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
    ]
    plain = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "one\ntwo"}]
    texts = {
        text_of(post(client, "/v1/chat/completions", {"messages": some, "temperature": 0, "max_tokens": 10}))
        for some in (messages, plain)
    }
    assert len(texts) == 1


@pytest.mark.parametrize("stop", [None, ["add"]])
@pytest.mark.parametrize(("path", "body"), BOTH)
def test_speculation_runs_join_to_the_text_and_end_with_stats(
    client: httpx.Client, path: str, body: dict[str, Any], stop: list[str] | None
) -> None:
    """Also where characters span tokens and where text is held back for a stop string."""
    options = {"include_speculation": True}
    chunks = events(client, path, {**body, "seed": 1, "max_tokens": 150, "stop": stop, "stream_options": options})
    choices = [chunk["choices"][0] for chunk in chunks]
    runs = [run for choice in choices for run in choice.get("speculation", {}).get("runs", ())]
    assert "".join(run["text"] for run in runs) == streamed_text(chunks)
    assert all(set(run) == {"text", "source"} for run in runs)
    stats = choices[-1]["speculation"]["stats"]
    assert stats["accepted"] <= stats["drafted"]
    assert stats["forward_passes"] + stats["accepted"] >= stats["completion_tokens"]


def test_harmless_standard_fields_are_accepted(client: httpx.Client) -> None:
    extra = {
        "user": "u1",
        "metadata": {"k": "v"},
        "store": False,
        "service_tier": "auto",
        "parallel_tool_calls": True,
        "modalities": ["text"],
        "response_format": {"type": "text"},
        "tools": [],
        "tool_choice": "none",
        "audio": None,
        "reasoning_effort": None,
        "stream": True,
        "stream_options": {"include_obfuscation": True},
    }
    assert client.post("/v1/chat/completions", json={**CHAT, **extra}).status_code == 200


def test_every_field_may_be_null(client: httpx.Client) -> None:
    for path, body in BOTH:
        body_of = client.get("/openapi.json").json()["paths"][path]["post"]["requestBody"]
        schema = body_of["content"]["application/json"]["schema"]
        names = schema.get("oneOf", [schema])[0]["properties"]  # OpenAI's own form comes first
        assert "repetition_penalty" in names
        post(client, path, {**dict.fromkeys(names), **body})


def test_any_content_type_and_an_empty_bearer_are_fine(client: httpx.Client) -> None:
    headers = {"content-type": "application/x-www-form-urlencoded", "authorization": "Bearer"}
    assert client.post("/v1/completions", content=json.dumps(TEXT), headers=headers).status_code == 200

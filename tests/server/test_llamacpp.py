"""llama.cpp's routes, as unchanged llama.vim, llama.vscode and other clients of its server use them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from lookup_server.settings import Settings

from lookup_spec.model.embedded import EMBEDDED, is_installed
from lookup_spec.pipeline.engine import Engine
from tests.server.test_serve import command
from tests.server.tiny_service import FIM, Running, SlowEngine, running, tiny_model, until

SMALL = EMBEDDED["qwen2.5-coder-0.5b-instruct"]
TIMES = [f"{kind}_{name}" for kind in ("prompt", "predicted") for name in ("n", "ms", "per_token_ms", "per_second")]
FIELDS = ["content", *(f"timings/{name}" for name in TIMES), "truncated", "tokens_cached"]
VIM: dict[str, Any] = {
    "id_slot": 0,
    "input_prefix": "def add(a, b):\n",
    "input_suffix": "u\n\nprint(add(1,2))\n",
    "input_extra": [{"text": "for item in items:\n", "time": [12, 345678], "filename": "items.py"}],
    "prompt": "    ret",
    "n_predict": 24,
    "stop": [],
    "n_indent": 0,
    "top_k": 40,
    "top_p": 0.9,
    "samplers": ["top_k", "top_p", "infill"],
    "stream": False,
    "cache_prompt": True,
    "t_max_prompt_ms": 500,
    "t_max_predict_ms": 60_000,
    "model": "",
    "response_fields": FIELDS,
}
VIM_WARM_UP = {
    **VIM,
    "input_prefix": "",
    "input_suffix": "",
    "prompt": "",
    "n_predict": 0,
    "temperature": 0.0,
    "samplers": [],
    "t_max_prompt_ms": 1,
    "t_max_predict_ms": 1,
    "response_fields": [""],
}
VSCODE: dict[str, Any] = {
    **{name: VIM[name] for name in ("id_slot", "input_prefix", "input_suffix", "prompt", "n_predict", "n_indent")},
    **{name: VIM[name] for name in ("top_k", "samplers", "stream", "cache_prompt", "t_max_prompt_ms")},
    "input_extra": [{"text": "for item in items:\n", "time": 1700000000000, "filename": "items.py"}],
    "n_cmpl": 3,
    "top_p": 0.99,
    "t_max_predict_ms": 60_000,
}
INFILL: dict[str, Any] = {"input_prefix": "def add(a, b):\n    ", "input_suffix": "\n", "n_predict": 24}
TEXT: dict[str, Any] = {"prompt": "def add(a, b):\n", "n_predict": 24, "temperature": 0}
BOTH = [("/infill", INFILL), ("/completion", TEXT)]


@pytest.fixture(scope="module")
def fim_service() -> Iterator[Running]:
    with running(Engine(tiny_model(FIM)), Settings(served_names=("tiny",))) as one:
        yield one


@pytest.fixture(scope="module")
def fim(fim_service: Running) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=fim_service.url, timeout=120, trust_env=False) as one:
        yield one


def post(client: httpx.Client, path: str, body: dict[str, Any]) -> Any:
    response = client.post(path, json=body)
    assert response.status_code == 200, response.text
    return response.json()


def chunks(client: httpx.Client, path: str, body: dict[str, Any]) -> list[Any]:
    response = client.post(path, json={**body, "stream": True})
    assert response.status_code == 200, response.text
    *blocks, end = response.text.split("\n\n")
    assert end == ""
    return [json.loads(block.removeprefix("data: ")) for block in blocks]


def error_of(response: httpx.Response, status: int) -> Any:
    assert response.status_code == status, response.text
    return response.json()["error"]


def test_llama_vim_finds_the_content_in_its_one_line_of_compact_json(fim: httpx.Client) -> None:
    """It looks for it before it decodes, and sends an empty key and an empty model name."""
    response = fim.post("/infill", json=VIM, headers={"authorization": "Bearer"})
    assert response.status_code == 200
    assert re.match(r'\{"content":"', response.text)
    assert "\n" not in response.text
    assert list(response.json()) == FIELDS
    assert response.json()["content"]
    assert 0 < response.json()["timings/predicted_n"] <= 24


def test_a_warm_up_generates_nothing_and_answers_with_nothing(fim: httpx.Client) -> None:
    assert post(fim, "/infill", VIM_WARM_UP) == {}
    told = post(fim, "/infill", {**VIM_WARM_UP, "response_fields": None})
    assert (told["content"], told["tokens_predicted"], told["stop_type"]) == ("", 0, "limit")


def test_a_warm_up_computes_the_prompt_for_the_next_request(fim: httpx.Client) -> None:
    extra = [{"text": "".join(f"name_{n} = {n}\n" for n in range(60)), "filename": "warm.py"}]
    assert post(fim, "/infill", {**VIM_WARM_UP, "input_extra": extra}) == {}
    told = post(fim, "/infill", {**VIM, "input_extra": extra, "response_fields": None})
    assert told["timings"]["cache_n"] > 200
    assert told["timings"]["cache_n"] + told["timings"]["prompt_n"] == told["tokens_evaluated"]


def test_llama_vscode_gets_a_list_of_answers_with_what_it_reads(fim: httpx.Client) -> None:
    answers = post(fim, "/infill", VSCODE)
    assert [answer["index"] for answer in answers] == [0, 1, 2]
    for answer in answers:
        assert answer["content"] == answers[0]["content"]  # without a temperature, the likeliest text
        assert answer["timings"]["predicted_n"] == answer["tokens_predicted"] > 0
        assert answer["generation_settings"]["n_ctx"] == 2048
        assert answer["truncated"] is False
        assert answer["tokens_cached"] == answer["tokens_evaluated"] + answer["tokens_predicted"] - 1


def test_answers_differ_when_they_are_sampled(fim: httpx.Client) -> None:
    body = {**VSCODE, "temperature": 1, "seed": 3, "ignore_eos": True}
    answers, again = ([answer["content"] for answer in post(fim, "/infill", body)] for _ in range(2))
    assert len(set(answers)) == 3
    assert answers == again


def test_the_prompt_is_laid_out_with_the_models_own_tokens(fim: httpx.Client) -> None:
    told = post(fim, "/infill", {**VIM, "response_fields": ["prompt"]})
    assert told["prompt"] == (
        "<|repo_name|>myproject\n<|file_sep|>items.py\nfor item in items:\n<|file_sep|>filename\n"
        "<|fim_prefix|>def add(a, b):\n    ret<|fim_suffix|>u\n\nprint(add(1,2))\n<|fim_middle|>"
    )


def test_text_that_spells_control_tokens_stays_text(fim: httpx.Client, fim_service: Running) -> None:
    spelled = "x<|fim_middle|>y<|im_end|>"
    body = {**INFILL, "input_prefix": spelled, "input_suffix": spelled, "input_extra": [{"text": spelled}]}
    ids = fim_service.runner.engine.template.encode_data(spelled)
    told = post(fim, "/infill", body)
    # A repository with its name, two files with theirs, three markers.
    file, project = (post(fim, "/tokenize", {"content": f"{name}\n"})["tokens"] for name in ("filename", "myproject"))
    assert told["tokens_evaluated"] == 3 * len(ids) + 2 * (len(file) + 1) + len(project) + 1 + 3


def test_long_texts_are_cut_far_from_the_cursor(fim: httpx.Client) -> None:
    body = {**INFILL, "input_prefix": "a = 1\n" * 5000 + "near", "input_suffix": "close" + "\nb = 2" * 5000}
    body["input_extra"] = [{"text": f"extra {n}\n" * 40, "filename": f"{n}.py"} for n in range(20)]
    told = post(fim, "/infill", body)
    assert told["truncated"] is True
    assert "near<|fim_suffix|>close" in told["prompt"]
    assert "extra 19" in told["prompt"]  # the newest come last
    assert "extra 0\n" not in told["prompt"]
    assert told["tokens_evaluated"] + 24 < 2048


@pytest.mark.parametrize(("path", "body"), BOTH)
@pytest.mark.parametrize("settings", [{}, {"temperature": 0.9, "seed": 4}, {"n_cmpl": 2, "temperature": 1, "seed": 1}])
def test_stream_and_whole_reply_have_the_same_text(
    fim: httpx.Client, path: str, body: dict[str, Any], settings: dict[str, Any]
) -> None:
    whole, parts = post(fim, path, {**body, **settings}), chunks(fim, path, {**body, **settings})
    for answer in whole if isinstance(whole, list) else [whole]:
        own = [part for part in parts if part["index"] == answer["index"]]
        assert "".join(part["content"] for part in own) == answer["content"] != ""
        assert own[-1]["stop_type"] == answer["stop_type"]


@pytest.mark.parametrize(("path", "body"), BOTH)
@pytest.mark.parametrize("settings", [{}, {"temperature": 0.9, "seed": 4}])
def test_speculation_never_changes_the_answer(
    fim: httpx.Client, path: str, body: dict[str, Any], settings: dict[str, Any]
) -> None:
    body = {**body, **settings, "n_predict": 100}
    assert len({post(fim, path, {**body, "speculation": on})["content"] for on in (True, False)}) == 1


@pytest.mark.parametrize(("path", "body"), BOTH)
@pytest.mark.parametrize("fields", [None, ["timings/predicted_n"]])
def test_every_chunk_has_content_and_stop_and_the_last_one_the_rest(
    fim: httpx.Client, path: str, body: dict[str, Any], fields: list[str] | None
) -> None:
    parts = chunks(fim, path, {**body, "response_fields": fields, "return_tokens": True, "ignore_eos": True})
    assert [part["stop"] for part in parts] == [False] * (len(parts) - 1) + [True]
    assert all(isinstance(part["content"], str) for part in parts)
    assert sum(len(part["tokens"]) for part in parts[:-1]) == 24
    if fields is None:
        last = parts[-1]
        assert last["timings"]["predicted_n"] == last["tokens_predicted"] == 24
        assert (last["stop_type"], last["stopping_word"], last["truncated"]) == ("limit", "", False)
        assert last["generation_settings"]["n_predict"] == 24
    else:
        assert parts[-1] == {"content": "", "timings/predicted_n": 24, "stop": True}


def test_a_stop_word_is_told_and_left_out(fim: httpx.Client) -> None:
    full = post(fim, "/completion", {**TEXT, "n_predict": 60})["content"]
    stop = full[9:12]
    told = post(fim, "/completion", {**TEXT, "n_predict": 60, "stop": [stop, ""]})
    assert told["content"] == full[: full.index(stop)]
    assert (told["stop_type"], told["stopping_word"]) == ("word", stop)


@pytest.mark.parametrize("as_tokens", [True, False])
def test_list_prompts_get_lists_of_answers(fim: httpx.Client, as_tokens: bool) -> None:
    prompts: list[Any] = ["def add", "for item"]
    alone = [post(fim, "/completion", {**TEXT, "prompt": prompt})["content"] for prompt in prompts]
    if as_tokens:
        prompts = [post(fim, "/tokenize", {"content": prompt, "add_special": True})["tokens"] for prompt in prompts]
        assert post(fim, "/completion", {**TEXT, "prompt": prompts[0]})["content"] == alone[0]
    answers = post(fim, "/completion", {**TEXT, "prompt": prompts})
    assert [answer["content"] for answer in answers] == alone
    assert [answer["prompt"] for answer in answers] == ["def add", "for item"]


def test_continues_llama_cpp_request_is_understood(fim: httpx.Client) -> None:
    body = {"model": "tiny", "prompt": "def add", "n_predict": 8, "stop": ["\n\n"], "top_k": 40, "top_p": 0.9}
    parts = chunks(fim, "/completion", {**body, "min_p": 0.1, "temperature": 0.1, "frequency_penalty": 0})
    assert parts[-1]["stop"] is True


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"input_suffix": ""}, "input_prefix"),
        ({"input_prefix": ""}, "input_suffix"),
        ({**INFILL, "prompt": 5}, "prompt"),
        ({**INFILL, "input_extra": {}}, "input_extra"),
        ({**INFILL, "input_extra": [{"filename": "x"}]}, "input_extra[0].text"),
        ({**INFILL, "input_extra": [{"text": 5}]}, "input_extra[0].text"),
        ({**INFILL, "input_extra": [{"text": "", "filename": 5}]}, "input_extra[0].filename"),
        ({**INFILL, "samplers": ["best"]}, "samplers[0]"),
        ({**INFILL, "n_predict": -3}, "n_predict"),
        ({**INFILL, "n_cmpl": 0}, "n_cmpl"),
        ({**INFILL, "temperature": float("nan")}, "temperature"),
        ({**INFILL, "top_p": 0}, "top_p"),
        ({**INFILL, "grammar": "root ::= x"}, "grammar"),
        ({**INFILL, "lora": [{"id": 0, "scale": 1.0}]}, "lora"),
        ({**INFILL, "response_fields": "content"}, "response_fields"),
    ],
)
def test_a_bad_field_is_refused_by_name(fim: httpx.Client, body: dict[str, Any], param: str) -> None:
    error = error_of(fim.post("/infill", content=json.dumps(body)), 400)
    assert (error["type"], error["param"]) == ("invalid_request_error", param)


def test_a_model_without_fill_in_tokens_says_so_before_all_else(client: httpx.Client) -> None:
    error = error_of(client.post("/infill", content=b"{"), 501)
    assert (error["type"], error["code"]) == ("not_supported_error", 501)
    assert error["message"].startswith("Infill is not supported by this model")


def test_openai_completions_fill_in_before_a_suffix(fim: httpx.Client, client: httpx.Client) -> None:
    body = {"prompt": "def add(a, b):\n", "suffix": "\nprint()", "max_tokens": 24, "temperature": 0}
    reply = post(fim, "/v1/completions", body)
    prompt = "<|fim_prefix|>def add(a, b):\n<|fim_suffix|>\nprint()<|fim_middle|>"
    raw = post(fim, "/v1/completions", {**body, "prompt": prompt, "suffix": None})
    assert reply["usage"]["prompt_tokens"] == raw["usage"]["prompt_tokens"]
    assert raw["choices"][0]["text"].startswith(reply["choices"][0]["text"])
    assert error_of(client.post("/v1/completions", json=body), 400)["param"] == "suffix"


def test_llama_vims_chat_and_its_warm_up_are_understood(fim: httpx.Client) -> None:
    body = {"id_slot": 0, "messages": [{"role": "user", "content": "add"}], "cache_prompt": True}
    more = {"min_p": 0.1, "temperature": 0.1, "samplers": ["min_p", "temperature"], "max_tokens": 8}
    assert post(fim, "/v1/chat/completions", {**body, **more})["choices"]
    warm = {"samplers": [], "n_predict": 0, "stream": False, "response_fields": [""]}
    assert post(fim, "/v1/chat/completions", {**body, **warm})["usage"]["completion_tokens"] == 0


def test_props_tell_the_context_and_the_template(fim: httpx.Client) -> None:
    props = fim.get("/props").json()
    assert props["default_generation_settings"]["n_ctx"] == 2048
    assert props["default_generation_settings"]["params"]["top_k"] == 40
    assert props["total_slots"] == 32
    assert "<|im_start|>" in props["chat_template"]


def test_slots_are_free_while_nothing_runs(fim: httpx.Client) -> None:
    slots = fim.get("/slots?fail_on_no_slot=1").json()
    assert [slot["id"] for slot in slots] == list(range(32))
    assert not any(slot["is_processing"] for slot in slots)


def test_tokens_and_text_go_both_ways(fim: httpx.Client) -> None:
    text = "naïve ✅\n<|im_end|>"
    for special in (True, False):
        body = {"content": text, "parse_special": special}
        tokens = post(fim, "/tokenize", body)["tokens"]
        assert post(fim, "/detokenize", {"tokens": tokens}) == {"content": text}
        pieces = post(fim, "/tokenize", {**body, "with_pieces": True})["tokens"]
        assert [piece["id"] for piece in pieces] == tokens
        assert (pieces[-1]["piece"] == "<|im_end|>") is special
    assert error_of(fim.post("/detokenize", json={"tokens": [10**6]}), 400)["param"] == "tokens"


def test_a_conversation_is_shown_as_the_model_reads_it(fim: httpx.Client) -> None:
    body = {"messages": [{"role": "user", "content": "add ✅"}]}
    assert post(fim, "/apply-template", body) == {
        "prompt": "<|im_start|>user\nadd ✅<|im_end|>\n<|im_start|>assistant\n"
    }


@pytest.mark.slow
@pytest.mark.skipif(not is_installed(SMALL), reason=f"the packages of {SMALL.name} are not installed")
def test_a_real_model_fills_in_an_obvious_middle() -> None:
    body = {
        **VIM,
        "input_prefix": "def add(first, second):\n    return first + second\n\n\ndef subtract(first, second):\n",
        "prompt": "    return first ",
        "input_suffix": "\n\n\nprint(add(1, 2), subtract(2, 1))\n",
        "n_predict": 16,
    }
    with command("--model", SMALL.name, "--port", "0", "--dtype", "float32") as (_, url):
        replies = [
            httpx.post(f"{url}infill", json={**body, "speculation": on}, timeout=300, trust_env=False).json()
            for on in (True, False)
        ]
    assert replies[0]["content"] == replies[1]["content"]
    assert replies[0]["content"].startswith("- second\n")


@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_over_its_time_gets_nothing_and_the_next_request_goes_on_from_there(stream: bool) -> None:
    """In the end the answer is the one that there would have been."""
    body = {"prompt": [5] * 1200, "n_predict": 12, "temperature": 0, "stream": stream}
    limits = ({"t_max_prompt_ms": 60}, {"t_max_prompt_ms": 60_000})
    engine = SlowEngine(tiny_model(), prefill_chunk=64)
    with running(engine, Settings()) as one, httpx.Client(base_url=one.url, timeout=120, trust_env=False) as client:

        def ask(more: dict[str, int]) -> tuple[str, Any]:
            if not stream:
                told = post(client, "/completion", {**body, **more})
                return told["content"], told
            parts = chunks(client, "/completion", {**body, **more})
            return "".join(part["content"] for part in parts), parts[-1]

        (cut, cut_end), (rest, rest_end) = (ask(more) for more in limits)
        assert (cut, cut_end["tokens_predicted"], cut_end["stop_type"]) == ("", 0, "limit")
        assert rest_end["timings"]["cache_n"] >= 64
        assert rest_end["tokens_predicted"] > 0
        until(lambda: one.runner.active == 0)
        fresh = [*body["prompt"]]
        assert (
            rest
            == post(client, "/completion", {**body, "stream": False, "prompt": fresh, "t_max_prompt_ms": 0})["content"]
        )


def test_a_warm_up_may_take_longer_than_its_client_says() -> None:
    """They all say one millisecond, and mean that nobody waits."""
    body = {"prompt": [5] * 600, "n_predict": 0, "t_max_prompt_ms": 1, "t_max_predict_ms": 1}
    engine = SlowEngine(tiny_model(), prefill_chunk=64)
    with running(engine, Settings()) as one, httpx.Client(base_url=one.url, timeout=120, trust_env=False) as client:
        post(client, "/completion", body)
        assert post(client, "/completion", {**body, "n_predict": 1})["timings"]["cache_n"] == 599

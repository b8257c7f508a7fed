"""Settings from flags, the environment and a file."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any, get_args, get_type_hints

import httpx
import pytest
from lookup_server.configuration import load_settings
from lookup_server.settings import Settings

from lookup_spec.cli.serve import serve
from lookup_spec.errors import LookupSpecError
from lookup_spec.model.load import LoadedModel
from lookup_spec.pipeline.engine import Engine
from tests.server.tiny_service import running

NAMES = {field.alias or name: field for name, field in Settings.model_fields.items()}


def file(folder: Path, text: str) -> Path:
    path = folder / "settings.toml"
    path.write_text(text)
    return path


def test_a_flag_counts_more_than_the_environment_and_that_more_than_the_file(tmp_path: Path) -> None:
    path = file(tmp_path, "port = 1\nmax_waiting = 2\nmax_sessions = 3\napi_key = ['f']\n")
    environment = {
        "LOOKUP_SPEC_PORT": "4",
        "LOOKUP_SPEC_MAX_WAITING": "5",
        "LOOKUP_SPEC_API_KEY": " a  b ",
        "PORT": "9",
    }
    settings = load_settings({"port": 6, "max_waiting": None}, environment, path)
    assert (settings.port, settings.max_waiting, settings.max_sessions) == (6, 5, 3)
    assert settings.api_keys == ("a", "b")
    assert settings.grace_seconds == Settings().grace_seconds


def test_the_environment_can_name_the_file(tmp_path: Path) -> None:
    path = file(tmp_path, "strict_openai = true")
    assert load_settings({}, {"LOOKUP_SPEC_CONFIG": str(path)}).strict_openai


@pytest.mark.parametrize(
    ("flags", "environment", "text", "said"),
    [
        ({"port": 70000}, {}, "", r"^--port is 70000, which is wrong: .*less than or equal to 65535\.$"),
        ({}, {"LOOKUP_SPEC_PORT": "tcp://10.0.0.1:80"}, "", r"^LOOKUP_SPEC_PORT is 'tcp://10.0.0.1:80', .*integer"),
        ({}, {"LOOKUP_SPEC_API_KEYS": "a"}, "", r"LOOKUP_SPEC_API_KEYS .* did you mean LOOKUP_SPEC_API_KEY\?$"),
        ({}, {}, "max_wait = 3", r"^max_wait in .*settings.toml is not a setting; did you mean max_waiting\?$"),
        ({}, {}, "zebra = 3", r"zebra in .* there are .*max_waiting"),
        ({}, {}, "grace_seconds = -1", r"^grace_seconds in .*settings.toml is -1"),
        ({}, {}, "port = ", r"settings.toml is not TOML: "),
        ({"api_key": ["secret", ""]}, {}, "", r"^--api-key, which is wrong: a key is empty"),
        ({"served_model_name": ["a", "a"]}, {}, "", r"the same name is there twice"),
        ({"served_model_name": ["a,temprature=0"]}, {}, "", r"0.temprature"),
        ({"served_model_name": ["a,temperature=warm"]}, {}, "", r"0.temperature.*number"),
        ({"log_format": "xml"}, {}, "", r"--log-format is 'xml'.*'text' or 'json'"),
    ],
)
def test_what_is_wrong_is_named_where_it_was_given(
    tmp_path: Path, flags: dict[str, Any], environment: dict[str, str], text: str, said: str
) -> None:
    with pytest.raises(LookupSpecError, match=said) as error:
        load_settings(flags, environment, file(tmp_path, text))
    assert "\n" not in str(error.value)
    assert "secret" not in str(error.value)


def test_a_missing_file_is_one_clear_sentence(tmp_path: Path) -> None:
    with pytest.raises(LookupSpecError, match=r"nowhere.toml cannot be read \(No such file"):
        load_settings({}, {}, tmp_path / "nowhere.toml")


def test_variables_that_kubernetes_makes_from_a_services_name_do_no_harm() -> None:
    environment = {"LOOKUP_SPEC_SERVICE_HOST": "10.0.0.1", "LOOKUP_SPEC_PORT_80_TCP_ADDR": "10.0.0.1"}
    assert load_settings({}, environment) == Settings()


def test_every_setting_is_a_flag_and_its_help_tells_the_default() -> None:
    hints = get_type_hints(serve, include_extras=True)
    flags = dict(inspect.signature(serve).parameters)
    assert set(flags) - {"config", "open_page"} == set(NAMES)
    for name, field in NAMES.items():
        _, option = get_args(hints[name])
        told = re.search(r"\[default: ([^\],]+)", option.help)
        default = field.default
        if not (default is None or isinstance(default, tuple | bool)):
            assert told, name
            assert str(told[1]) == (f"{default:g}" if isinstance(default, float) else str(default)), name


def test_a_name_of_the_model_decides_how_it_samples(loaded: LoadedModel) -> None:
    """For requests that do not say, on every route that takes a model."""
    names = ("free", "edits,temperature=0,max_tokens=3", {"name": "hot", "temperature": 2.0})
    with (
        running(Engine(loaded), Settings(served_names=names)) as one,
        httpx.Client(base_url=one.url, timeout=120, trust_env=False) as client,
    ):

        def texts(path: str, count: int, **body: Any) -> set[str]:
            chat = {"messages": [{"role": "user", "content": "def"}]} if "chat" in path else {"prompt": "def"}
            replies = [client.post(path, json={**chat, **body}).raise_for_status().json() for _ in range(count)]
            return {str(reply.get("choices") or reply["content"]) for reply in replies}

        for path in ("/v1/completions", "/v1/chat/completions", "/completion"):
            limit = {"n_predict": 8} if path == "/completion" else {"max_tokens": 8}
            assert len(texts(path, 3, model="free", **limit)) == 3
            assert len(texts(path, 3, model="edits")) == 1
            assert len(texts(path, 3, model="edits", temperature=2, **limit)) == 3
        usage = client.post(
            "/v1/chat/completions", json={"model": "edits", "messages": [{"role": "user", "content": "x"}]}
        )
        assert usage.json()["usage"]["completion_tokens"] <= 3
        assert [card["id"] for card in client.get("/v1/models").json()["data"]] == ["free", "edits", "hot"]


def test_the_context_can_be_bounded(loaded: LoadedModel) -> None:
    with (
        running(Engine(loaded, max_context_tokens=100), Settings()) as one,
        httpx.Client(base_url=one.url, timeout=120, trust_env=False) as client,
    ):
        refused = client.post("/v1/completions", json={"prompt": [5] * 100})
        assert (refused.status_code, refused.json()["error"]["n_ctx"]) == (400, 100)
        reply = client.post("/v1/completions", json={"prompt": [5] * 90, "max_tokens": 50, "ignore_eos": True}).json()
        assert reply["usage"]["total_tokens"] == 100
        assert client.get("/v1/models").json()["data"][0]["max_model_len"] == 100

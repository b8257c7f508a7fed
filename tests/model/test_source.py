"""What a --model value may name, and what is said when it names nothing."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest

from lookup_spec.errors import ModelError
from lookup_spec.model.embedded import DEFAULT
from lookup_spec.model.source import DirectorySource, EmbeddedSource, GgufSource, resolve


@pytest.fixture
def unplugged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    """A machine without network; the list fills with the attempts to use it."""
    attempts: list[Any] = []

    def refuse(*arguments: Any, **_: Any) -> Any:
        attempts.append(arguments)
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return attempts


def test_embedded_names_win() -> None:
    """The name of an embedded model is that model."""
    source = resolve(DEFAULT)
    assert isinstance(source, EmbeddedSource)
    assert source.model.name == DEFAULT


def test_gguf_files_are_named_by_their_stem(tmp_path: Path) -> None:
    """A .gguf file is taken whatever the case of its ending."""
    (tmp_path / "My-Model.GGUF").write_bytes(b"")
    assert resolve(str(tmp_path / "My-Model.GGUF")) == GgufSource("My-Model", tmp_path / "My-Model.GGUF")


def test_directories_are_named_by_their_last_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory with a configuration is a model, also when given relative to the current one."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    expected = DirectorySource("model", tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    assert resolve("model") == resolve("./model") == resolve(str(tmp_path / "model")) == expected
    monkeypatch.chdir(tmp_path / "model")
    assert resolve(".") == expected


def test_a_directory_without_configuration_points_to_the_file_in_it(tmp_path: Path) -> None:
    """A directory that is no model is refused; a GGUF file in it is pointed out."""
    with pytest.raises(ModelError, match=r"holds no config\.json"):
        resolve(str(tmp_path))
    (tmp_path / "a.gguf").write_bytes(b"")
    with pytest.raises(ModelError, match=r"give the file .*a\.gguf"):
        resolve(str(tmp_path))


def test_other_files_are_refused(tmp_path: Path) -> None:
    """A file of another kind is refused."""
    (tmp_path / "model.bin").write_bytes(b"")
    with pytest.raises(ModelError, match=r"not a \.gguf file"):
        resolve(str(tmp_path / "model.bin"))


@pytest.mark.parametrize("spec", ["./nothing", "/nothing/here", "~/nothing", "nothing.gguf", "a/b/c", "", "a b"])
def test_paths_to_nothing_never_ask_the_network(unplugged: list[Any], spec: str) -> None:
    """What cannot be an id is refused without a look at the network; the embedded models are listed."""
    with pytest.raises(ModelError, match=r"There is no file or directory .* embedded models"):
        resolve(spec)
    assert unplugged == []


@pytest.mark.parametrize("spec", ["some-org/some-model", "gpt2-nonexistent"])
def test_an_id_without_network_is_one_clear_sentence(unplugged: list[Any], spec: str) -> None:
    """An id that is not in the local cache asks the hub once and fails in one sentence."""
    with pytest.raises(ModelError, match="is neither an embedded model, nor a directory") as caught:
        resolve(spec)
    assert spec in str(caught.value)
    assert "\n" not in str(caught.value)
    # The hub's client may also look for a list of its own, once a process.
    assert len(unplugged) <= 2


def test_an_id_in_the_local_cache_needs_no_network(unplugged: list[Any], tmp_path: Path) -> None:
    """A model that was fetched before is found without any look at the network."""
    repo = tmp_path / "hub" / "models--some-org--some-model"
    snapshot = repo / "snapshots" / "0123456789012345678901234567890123456789"
    snapshot.mkdir(parents=True)
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text(snapshot.name)
    (snapshot / "config.json").write_text("{}")
    (snapshot / "model.safetensors").write_bytes(b"")
    assert resolve("some-org/some-model") == DirectorySource("some-org/some-model", snapshot)
    assert unplugged == []

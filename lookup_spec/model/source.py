"""What ``--model`` means: an embedded model, a GGUF file, a directory, or a Hugging Face id."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import huggingface_hub
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

from lookup_spec.errors import ModelError
from lookup_spec.model.embedded import EMBEDDED, EmbeddedModel, is_installed
from lookup_spec.model.libraries import one_line

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_FILES = ("*.json", "*.safetensors", "*.model", "*.txt", "*.jinja")
_CONNECT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class EmbeddedSource:
    """A model that comes as installed packages."""

    name: str
    model: EmbeddedModel


@dataclass(frozen=True, slots=True)
class GgufSource:
    """A GGUF file of the user's."""

    name: str
    path: Path


@dataclass(frozen=True, slots=True)
class DirectorySource:
    """A directory of configuration, safetensors and tokenizer."""

    name: str
    path: Path


Source = EmbeddedSource | GgufSource | DirectorySource


def resolve(spec: str) -> Source:
    """Finds what a ``--model`` value names. A name of an embedded model wins; ``./name`` is always a path.

    Ids are looked for in the local Hugging Face cache first; only if they are not there is the hub asked,
    once and with a short timeout.

    Raises:
        ModelError: there is nothing of that name; the message lists the embedded models.
    """
    if spec in EMBEDDED:
        return EmbeddedSource(spec, EMBEDDED[spec])
    path = Path(spec).expanduser()
    if spec and path.is_dir():
        return _directory(path)
    if path.is_file():
        if path.suffix.lower() != ".gguf":
            raise ModelError(f"{spec} is a file, but not a .gguf file; give a .gguf file or the model's directory.")
        return GgufSource(path.stem, path.resolve())
    looks_like_path = spec.startswith((".", "~", os.sep)) or spec.lower().endswith(".gguf")
    if looks_like_path or not _HUB_ID.fullmatch(spec):
        raise ModelError(f"There is no file or directory {spec!r}; {_embedded_models()}.")
    return DirectorySource(spec, _snapshot(spec))


def _directory(path: Path) -> DirectorySource:
    if not (path / "config.json").is_file():
        files = sorted(path.glob("*.gguf"))
        advice = f"give the file {files[0]}" if files else "give a model's directory"
        raise ModelError(f"The directory {path} holds no config.json, so it is no model; {advice}.")
    return DirectorySource(path.resolve().name, path.resolve())


def _snapshot(name: str) -> Path:
    """The files of a Hugging Face id, from the local cache or else from the hub."""
    try:
        path = Path(huggingface_hub.snapshot_download(name, local_files_only=True))
        if (path / "config.json").is_file() and any(path.glob("*.safetensors")):
            return path
    except (LocalEntryNotFoundError, HFValidationError):
        pass
    try:
        revision = huggingface_hub.HfApi().model_info(name, timeout=_CONNECT_SECONDS).sha
        return Path(
            huggingface_hub.snapshot_download(
                name, revision=revision, allow_patterns=list(_FILES), etag_timeout=_CONNECT_SECONDS
            )
        )
    except HfHubHTTPError as error:
        raise ModelError(
            f"The Hugging Face hub does not give out {name!r} ({one_line(error)}), and there is no embedded "
            f"model or directory of that name; {_embedded_models()}."
        ) from error
    # The hub client raises its HTTP library's errors, and which library that is depends on its version.
    except Exception as error:
        raise ModelError(
            f"{name!r} is neither an embedded model, nor a directory, nor in the local Hugging Face cache, "
            f"and the hub cannot be reached ({one_line(error)}); {_embedded_models()}."
        ) from error


def _embedded_models() -> str:
    installed = [name for name, model in EMBEDDED.items() if is_installed(model)]
    if installed:
        return f"installed embedded models: {', '.join(installed)}"
    return f"embedded models that can be installed: {', '.join(EMBEDDED)}"

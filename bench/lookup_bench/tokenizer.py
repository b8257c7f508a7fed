"""The tokenizer to replay with."""

from __future__ import annotations

from pathlib import Path

import typer
from tokenizers import Tokenizer

from lookup_spec.errors import ModelError


def open_tokenizer(model: str) -> Tokenizer:
    """Opens a ``tokenizer.json``, the one in a directory, or that of a model that can be loaded.

    Raises:
        ModelError: there is none.
    """
    path = Path(model).expanduser()
    if path.is_dir() and (path / "tokenizer.json").is_file():
        path = path / "tokenizer.json"
    if path.is_file() and path.suffix == ".json":
        try:
            return Tokenizer.from_file(str(path))
        # The Rust library raises plain Exception for whatever is wrong with a file.
        except Exception as error:
            raise ModelError(f"{path} is no tokenizer.json: {error}") from error
    return _of_model(model)


def _of_model(model: str) -> Tokenizer:
    # Only a model that has to be found by name needs the tensor lane.
    from lookup_spec.model.embedded import assemble
    from lookup_spec.model.gguf_file import read_gguf
    from lookup_spec.model.gguf_tokenizer import gguf_tokenizer
    from lookup_spec.model.source import DirectorySource, EmbeddedSource, resolve
    from lookup_spec.model.tokenizer import load_tokenizer

    source = resolve(model)
    if isinstance(source, DirectorySource):
        return load_tokenizer(source.path).backend_tokenizer
    path = assemble(source.model, _say) if isinstance(source, EmbeddedSource) else source.path
    return gguf_tokenizer(read_gguf(path)).backend_tokenizer


def _say(message: str) -> None:
    typer.echo(message, err=True)

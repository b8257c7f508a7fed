"""Reading GGUF headers, and refusing files that contradict themselves."""

from __future__ import annotations

from pathlib import Path

import gguf
import pytest
from fakes.gguf_files import TinyGguf, twin

from lookup_spec.errors import ModelError
from lookup_spec.model.gguf_checks import check_consistent, check_rotary
from lookup_spec.model.gguf_file import read_gguf, write_without_vocabulary


def test_header_equals_what_the_reference_reader_sees(tmp_path: Path) -> None:
    """Every key, value and tensor shape is as gguf's own reader has it."""
    path = TinyGguf(quantized=True).write(tmp_path / "m.gguf")
    ours, theirs = read_gguf(path), gguf.GGUFReader(path)
    expected = {k: f.contents() for k, f in theirs.fields.items() if not k.startswith("GGUF.")}
    assert ours.metadata == expected
    assert ours.tensors == {t.name: tuple(int(n) for n in reversed(t.shape)) for t in theirs.tensors}


def test_copy_without_vocabulary_keeps_everything_else(tmp_path: Path) -> None:
    """The stripped copy has the same tensors, bit for bit, and the size in place of the vocabulary."""
    path = TinyGguf(quantized=True).write(tmp_path / "m.gguf")
    file = read_gguf(path)
    write_without_vocabulary(file, tmp_path / "bare.gguf", 123)
    bare = read_gguf(tmp_path / "bare.gguf")
    gone = {f"tokenizer.ggml.{part}" for part in ("tokens", "token_type", "merges")}
    assert {**file.metadata, "qwen2.vocab_size": 123}.keys() - gone == bare.metadata.keys()
    assert bare.metadata["qwen2.vocab_size"] == 123
    before, after = gguf.GGUFReader(path).tensors, gguf.GGUFReader(tmp_path / "bare.gguf").tensors
    assert [(t.name, t.data.tobytes()) for t in before] == [(t.name, t.data.tobytes()) for t in after]


@pytest.mark.parametrize("kept", [0, 3, 24, 1000, 20_000, -1])
def test_truncated_files_are_refused(tmp_path: Path, kept: int) -> None:
    """A file cut anywhere, even one byte before its end, is refused in one sentence that names it."""
    whole = TinyGguf().write(tmp_path / "whole.gguf").read_bytes()
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(whole[:kept])
    with pytest.raises(ModelError, match=r"cut\.gguf is no readable GGUF file") as caught:
        read_gguf(cut)
    assert "\n" not in str(caught.value)


def test_garbage_is_refused(tmp_path: Path) -> None:
    """Absurd counts in a corrupt header neither allocate nor loop."""
    path = tmp_path / "m.gguf"
    for junk in (b"GGUF" + b"\xff" * 4096, b"GGUF\x03\0\0\0" + b"\xff" * 4096, b"PK\x03\x04" * 64):
        path.write_bytes(junk)
        with pytest.raises(ModelError, match="no readable GGUF file"):
            read_gguf(path)


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("tokenizer.ggml.eos_token_id", None),
        ("tokenizer.ggml.eos_token_id", 5000),
        ("tokenizer.ggml.bos_token_id", 4_294_967_295),
        ("tokenizer.ggml.padding_token_id", 5000),
        ("tokenizer.ggml.unknown_token_id", 5000),
        ("tokenizer.ggml.tokens", None),
        ("tokenizer.ggml.token_type", [1, 1, 1]),
        ("tokenizer.ggml.model", None),
    ],
)
def test_inconsistent_metadata_names_the_key(tmp_path: Path, key: str, change: object) -> None:
    """Missing or out-of-range values are refused with the key's name."""
    path = TinyGguf(changes={key: change}).write(tmp_path / "m.gguf")
    with pytest.raises(ModelError, match=key):
        check_consistent(read_gguf(path))


def test_vocabulary_beyond_the_embeddings_is_refused(tmp_path: Path) -> None:
    """Tokens for which the model has no embedding are refused."""
    path = TinyGguf(missing_rows=1).write(tmp_path / "m.gguf")
    with pytest.raises(ModelError, match=r"tokenizer\.ggml\.tokens has \d+ entries, more than the \d+ rows"):
        check_consistent(read_gguf(path))


def test_a_sound_file_passes(tmp_path: Path) -> None:
    """The checks accept the file that the others are made from."""
    file = read_gguf(TinyGguf().write(tmp_path / "m.gguf"))
    check_consistent(file)
    check_rotary(file, "default")
    assert len(file.tokens) == twin().get_vocab_size() + 3


@pytest.mark.parametrize(
    "tiny",
    [
        TinyGguf(extra_tensors=("rope_freqs.weight",)),
        TinyGguf(changes={"qwen2.rope.scaling.type": "yarn", "qwen2.rope.scaling.factor": 4.0}),
    ],
)
def test_unread_rotary_scaling_is_refused(tmp_path: Path, tiny: TinyGguf) -> None:
    """A rotary scaling that the configuration did not take over is refused instead of ignored."""
    file = read_gguf(tiny.write(tmp_path / "m.gguf"))
    with pytest.raises(ModelError, match="rotary positions"):
        check_rotary(file, "default")
    check_rotary(file, "yarn")

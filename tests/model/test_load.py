"""Models as they come out of loading, and what is said when they do not."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from fakes.gguf_files import TinyGguf, twin, write_directory
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel, MambaConfig, Phi3Config, Phi3ForCausalLM

from lookup_spec.errors import ModelError
from lookup_spec.model import load
from lookup_spec.model.embedded import DEFAULT, EMBEDDED, LIGHT, assemble, is_installed
from lookup_spec.model.gguf_convert import converted_path
from lookup_spec.model.gguf_file import file_sha256
from lookup_spec.model.load import LoadedModel, default_model, load_model, load_tokenizer_only

TWIN = twin()
ENDS = {TWIN.token_to_id("<|im_end|>"), TWIN.token_to_id("<|endoftext|>")}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("LOOKUP_SPEC_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return write_directory(tmp_path / "tiny-llama")


def edit(path: Path, **changes: Any) -> None:
    """Changes a JSON file; None takes a key out."""
    values = json.loads(path.read_text(encoding="utf-8")) | changes
    path.write_text(json.dumps({key: value for key, value in values.items() if value is not None}), encoding="utf-8")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    "tiny",
    [
        TinyGguf("qwen2"),
        TinyGguf("qwen2", quantized=True),
        TinyGguf("qwen2", tied=True),
        TinyGguf("llama", quantized=True),
    ],
    ids=["qwen2", "qwen2-q8", "qwen2-tied", "llama-q8"],
)
def test_gguf_weights_are_bit_for_bit_those_of_transformers(tmp_path: Path, tiny: TinyGguf, dtype: str) -> None:
    """Converting and loading gives exactly the weights that transformers reads from the same file."""
    path = tiny.write(tmp_path / "tiny.gguf")
    kind = getattr(torch, dtype)
    expected = AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file="tiny.gguf", dtype=kind).state_dict()
    loaded = load_model(str(path), dtype=dtype, device="cpu")
    actual = loaded.model.state_dict()
    assert actual.keys() == expected.keys()
    assert all(torch.equal(actual[name], expected[name]) for name in expected)
    assert {tensor.dtype for tensor in actual.values()} == {kind} == {loaded.dtype}


@pytest.mark.parametrize("tied", [True, False])
def test_one_tensor_in_the_file_is_one_in_memory(tmp_path: Path, tied: bool) -> None:
    """Embeddings and head share their memory exactly when the file has one tensor for both."""
    model = load_model(str(TinyGguf(tied=tied).write(tmp_path / "m.gguf")), dtype="float32").model
    shared = model.get_input_embeddings().weight.data_ptr() == model.get_output_embeddings().weight.data_ptr()
    assert shared is tied


def test_a_loaded_gguf_model_is_complete(tmp_path: Path) -> None:
    """Name, end tokens, context and tokenizer come from the file; the cache holds no leftovers."""
    path = TinyGguf().write(tmp_path / "tiny.gguf")
    said: list[str] = []
    loaded = load_model(str(path), dtype="float32", device="cpu", progress=said.append)
    assert (loaded.name, loaded.context_length, loaded.device.type) == ("tiny", 128, "cpu")
    assert loaded.eos_ids == ENDS
    assert loaded.tokenizer.encode("<think>") == [TWIN.token_to_id("<think>")]
    assert not loaded.model.training
    assert not any(parameter.requires_grad for parameter in loaded.model.parameters())
    assert [sentence.startswith("Converting tiny") for sentence in said] == [True]
    names = {file.name for file in converted_path("tiny", file_sha256(path), torch.float32).iterdir()}
    assert "model.safetensors" in names
    assert not [name for name in names if name.endswith(".gguf")]
    loaded.model.save_pretrained(tmp_path / "again")


def test_conversion_happens_once(tmp_path: Path) -> None:
    """The second load converts nothing, even from a copy of the file elsewhere under the same name."""
    path = TinyGguf().write(tmp_path / "tiny.gguf")
    (tmp_path / "other").mkdir()
    said: list[str] = []
    for place in (path, path, Path(shutil.copy(path, tmp_path / "other"))):
        load_model(str(place), dtype="float32", progress=said.append)
    assert len(said) == 1


def test_a_changed_file_is_converted_again(tmp_path: Path) -> None:
    """What is cached belongs to the file's contents, not to its name."""
    path = tmp_path / "tiny.gguf"
    lengths = []
    for length in (128, 256):
        TinyGguf(changes={"qwen2.context_length": length}).write(path)
        lengths.append(load_model(str(path), dtype="float32").context_length)
    assert lengths == [128, 256]


def test_padded_vocabularies_keep_their_rows(tmp_path: Path) -> None:
    """A file with more embeddings than tokens loads, as the tokens all have one."""
    path = TinyGguf(padding=0, missing_rows=-5).write(tmp_path / "m.gguf")
    assert load_model(str(path), dtype="float32").model.config.vocab_size == TWIN.get_vocab_size() + 5


@pytest.mark.parametrize("kept", [100, 20_000, -64])
def test_a_truncated_gguf_leaves_nothing_in_the_cache(tmp_path: Path, cache: Path, kept: int) -> None:
    """A truncated file is one sentence, and no trace of it stays."""
    path = TinyGguf().write(tmp_path / "m.gguf")
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ModelError, match="no readable GGUF file"):
        load_model(str(path), dtype="float32")
    assert [file.name for file in (cache / "converted").iterdir() if not file.name.endswith(".lock")] == []


def test_unknown_gguf_architectures_are_refused(tmp_path: Path) -> None:
    """An architecture that nothing here can read is refused by name."""
    path = TinyGguf(changes={"tokenizer.ggml.pre": "qwen2"}).write(tmp_path / "m.gguf")
    data = (
        path.read_bytes()
        .replace(b"qwen2.", b"zzzz2.")
        .replace(b"\x05\0\0\0\0\0\0\0qwen2", b"\x05\0\0\0\0\0\0\0zzzz2", 1)
    )
    path.write_bytes(data)
    with pytest.raises(ModelError, match=r"general\.architecture is 'zzzz2'"):
        load_model(str(path), dtype="float32")


def test_a_directory_loads_with_every_end_token(directory: Path) -> None:
    """End tokens of the generation configuration, the configuration and the tokenizer all count."""
    loaded = load_model(str(directory), dtype="float32", device="cpu")
    assert loaded.name == "tiny-llama"
    assert loaded.eos_ids == ENDS
    edit(directory / "generation_config.json", eos_token_id=[5, 6])
    edit(directory / "config.json", eos_token_id=7)
    assert load_model(str(directory), dtype="float32").eos_ids == {5, 6, 7, TWIN.token_to_id("<|im_end|>")}


def test_auto_reads_the_machine(directory: Path) -> None:
    """Without settings a model lands in a type and on a device that exist here."""
    loaded = load_model(str(directory))
    assert loaded.dtype in (torch.float32, torch.bfloat16)
    assert loaded.model.dtype is loaded.dtype
    assert loaded.model.device.type == loaded.device.type


def test_gpt2_states_its_context_by_another_name(directory: Path) -> None:
    """GPT-2's n_positions is its context length."""
    config = GPT2Config(vocab_size=TWIN.get_vocab_size(), n_positions=77, n_embd=8, n_layer=1, n_head=2)
    config.eos_token_id = config.bos_token_id = 1
    GPT2LMHeadModel(config).save_pretrained(directory)
    assert load_model(str(directory), dtype="float32").context_length == 77


def test_longrope_stays_within_its_first_frequencies(directory: Path) -> None:
    """A model whose positions change their meaning in long texts gets the context in which they do not."""
    config = Phi3Config(
        vocab_size=TWIN.get_vocab_size(), hidden_size=32, intermediate_size=32, num_hidden_layers=1,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=192, pad_token_id=0,
        original_max_position_embeddings=64, eos_token_id=1, bos_token_id=1,
        rope_parameters={
            "rope_type": "longrope", "rope_theta": 1e4, "short_factor": [1.0] * 4, "long_factor": [9.0] * 4
        },
    )  # fmt: skip
    Phi3ForCausalLM(config).save_pretrained(directory)
    assert load_model(str(directory), dtype="float32").context_length == 64


def test_the_tokenizer_is_that_of_its_file(directory: Path) -> None:
    """A declared class that would normalize text does not change what tokenizer.json says."""
    edit(directory / "config.json", model_type="qwen2", architectures=["Qwen2ForCausalLM"])
    edit(directory / "tokenizer_config.json", tokenizer_class="Qwen2Tokenizer")
    tokenizer = load.load_tokenizer(directory)
    for text in ("e\u0301", "ﬁ", "  a\r\n"):
        assert tokenizer.encode(text) == TWIN.encode(text).ids
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_the_tokenizer_alone_is_the_same(tmp_path: Path, directory: Path, cache: Path) -> None:
    """A tokenizer loaded without weights gives the same ids, and converts nothing."""
    path = TinyGguf().write(tmp_path / "m.gguf")
    for spec in (path, directory):
        assert load_tokenizer_only(str(spec)).encode("a <think>\tb").ids == TWIN.encode("a <think>\tb").ids
    assert not cache.exists()


def test_cleaning_up_spaces_is_overridden_and_logged(directory: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A tokenizer that asks to clean up spaces is told not to, and that is logged."""
    edit(directory / "tokenizer_config.json", clean_up_tokenization_spaces=True)
    with caplog.at_level(logging.WARNING):
        tokenizer = load_model(str(directory), dtype="float32").tokenizer
    assert tokenizer.clean_up_tokenization_spaces is False
    assert tokenizer.decode(tokenizer.encode("a , b")) == "a , b"
    assert "clean up spaces" in caplog.text


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1000])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda d: truncate(d / "model.safetensors"), r"weights in .*tiny-llama cannot be loaded"),
        (
            lambda d: (d / "model.safetensors").write_bytes(b"junk"),
            r"weights in .*tiny-llama cannot be loaded",
        ),
        (lambda d: (d / "model.safetensors").unlink(), r"weights in .*tiny-llama cannot be loaded"),
        (lambda d: edit(d / "config.json", num_hidden_layers=3), "incomplete: 9 tensors are missing"),
        (lambda d: edit(d / "config.json", hidden_size=32), r"weights in .*tiny-llama cannot be loaded"),
        (lambda d: edit(d / "config.json", model_type="unheard-of"), r"configuration in .* cannot be used"),
        (lambda d: (d / "config.json").write_text("{"), r"configuration in .* cannot be used"),
        (lambda d: (d / "tokenizer.json").write_text("{"), r"tokenizer in .* cannot be loaded"),
        (lambda d: (d / "tokenizer.json").unlink(), "fast"),
        (lambda d: edit(d / "generation_config.json", eos_token_id=99_999), "eos_token_id 99999 .* outside"),
        (lambda d: edit(d / "generation_config.json", eos_token_id="end"), "not a token id"),
        (lambda d: (d / "generation_config.json").write_text("["), "no valid JSON"),
    ],
)
def test_damaged_directories_are_one_sentence(directory: Path, damage: Any, message: str) -> None:
    """Whatever is missing, corrupt or contradictory is named in one line."""
    damage(directory)
    with pytest.raises(ModelError, match=message) as caught:
        load_model(str(directory), dtype="float32")
    assert "\n" not in str(caught.value)


def test_a_vocabulary_beyond_the_embeddings_is_refused(directory: Path) -> None:
    """A tokenizer with ids for which the model has no embedding does not belong to it."""
    data = json.loads((directory / "tokenizer.json").read_text(encoding="utf-8"))
    data["added_tokens"].append({**data["added_tokens"][-1], "id": TWIN.get_vocab_size(), "content": "<extra>"})
    (directory / "tokenizer.json").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(ModelError, match=r"'<extra>' the id \d+, but vocab_size is \d+"):
        load_model(str(directory), dtype="float32")


def test_a_model_without_an_end_is_refused(directory: Path) -> None:
    """A model for which nothing names an end token is refused by the key's name."""
    (directory / "generation_config.json").unlink()
    edit(directory / "config.json", eos_token_id=None)
    values = json.loads((directory / "config.json").read_text()) | {"eos_token_id": None}
    (directory / "config.json").write_text(json.dumps(values))
    edit(directory / "tokenizer_config.json", eos_token=None)
    with pytest.raises(ModelError, match="names no eos_token_id"):
        load_model(str(directory), dtype="float32")


def test_recurrent_models_are_refused_before_their_weights_are_read(tmp_path: Path) -> None:
    """The configuration alone decides; no weights need to be there."""
    MambaConfig(num_hidden_layers=1, hidden_size=8).save_pretrained(tmp_path / "mamba")
    with pytest.raises(ModelError, match="recurrent"):
        load_model(str(tmp_path / "mamba"), dtype="float32")


@pytest.mark.parametrize(
    ("memory", "installed", "expected"),
    [
        (64 << 30, {DEFAULT, LIGHT}, DEFAULT),
        (None, {DEFAULT, LIGHT}, DEFAULT),
        (4 << 30, {DEFAULT, LIGHT}, LIGHT),
        (4 << 30, {DEFAULT}, DEFAULT),
        (64 << 30, {LIGHT}, LIGHT),
        (64 << 30, set(), DEFAULT),
    ],
)
def test_the_light_model_stands_in_where_memory_is_short(
    monkeypatch: pytest.MonkeyPatch, memory: int | None, installed: set[str], expected: str
) -> None:
    """The large model runs where it fits and is installed; else the light one, if that is installed."""
    monkeypatch.setattr(load, "available_memory", lambda _: memory)
    monkeypatch.setattr(load, "is_installed", lambda model: model.name in installed)
    assert default_model("float32", "cpu") == expected


REAL = ["qwen2.5-coder-0.5b-instruct", "smollm2-135m-instruct"]


@pytest.fixture
def real_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's own cache: real models are converted once, not once a test."""
    monkeypatch.delenv("LOOKUP_SPEC_CACHE")


def real(name: str, dtype: str = "float32") -> LoadedModel:
    if not is_installed(EMBEDDED[name]):
        pytest.skip(EMBEDDED[name].install_command)
    return load_model(name, dtype=dtype, device="cpu")


@pytest.mark.slow
@pytest.mark.usefixtures("real_cache")
@pytest.mark.parametrize("name", [*REAL, "gemma3-270m"])
def test_real_tokenizers_bring_back_every_text(name: str) -> None:
    """Library sources, in every kind of line end and Unicode form, decode to themselves."""
    tokenizer = real(name).tokenizer
    library = Path(json.__file__).parent.parent
    texts = [(library / file).read_text(encoding="utf-8") for file in ("argparse.py", "heapq.py", "tokenize.py")]
    texts += [texts[0].replace("\n", "\r\n"), texts[1].replace("    ", "\t"), "\ufeff" + texts[1]]
    texts += ["🦉👩‍👩‍👧‍👦 e\u0301 é n\u0303 ñ \u1e9b\u0323", "  two  spaces\t\n\n\n", "Straße nº 7 … œuvre ﬁ"]
    for text in texts:
        ids = tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)
        assert tokenizer.decode(ids) == text


@pytest.mark.slow
@pytest.mark.usefixtures("real_cache")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", REAL)
def test_real_weights_are_those_of_transformers(name: str, dtype: str) -> None:
    """All weights equal, bit for bit, what transformers dequantizes from the same file."""
    loaded = real(name, dtype)
    path = assemble(EMBEDDED[name], lambda _: None)
    expected = AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=getattr(torch, dtype)
    ).state_dict()
    actual = loaded.model.state_dict()
    assert actual.keys() == expected.keys()
    assert all(torch.equal(actual[key], expected[key]) for key in expected)


@pytest.mark.slow
@pytest.mark.usefixtures("real_cache")
@pytest.mark.parametrize("name", REAL)
def test_real_models_end_their_turns(name: str) -> None:
    """The ends of a turn and of a text both end an answer; the declared number of weights is right."""
    loaded = real(name)
    assert loaded.eos_ids == set(loaded.tokenizer.convert_tokens_to_ids(["<|im_end|>", "<|endoftext|>"]))
    assert loaded.tokenizer.chat_template
    assert loaded.model.num_parameters() == EMBEDDED[name].parameters

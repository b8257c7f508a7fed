"""A tokenizer from a GGUF file gives the ids of the tokenizer.json it was made from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fakes.gguf_files import CONTROL, TEMPLATE, USER_DEFINED, TinyGguf, twin
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup_spec.errors import ModelError
from lookup_spec.model.gguf_file import read_gguf
from lookup_spec.model.gguf_tokenizer import end_ids, gguf_tokenizer
from lookup_spec.model.tokenizer import load_tokenizer

TWIN = twin()

STRINGS = [
    "<think>hi</think>",
    "Straße nº 7 … œuvre 🦉",
    "  two  spaces",
    "\t\tx\n\n\ny",
    "0123456789",
    "<|end|>",
    "<|im_end|>",
    "a<think>b",
    "",
    "ﬁ",
    "\u0000",
    "e\u0301 versus é",
    "\ufeffdef f():\r\n\treturn 1  # 2\r\n",
    "<tool_call>{}</tool_call>[PAD0]",
]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """As it is after saving and loading, which is how it is used."""
    directory = tmp_path_factory.mktemp("gguf")
    gguf_tokenizer(read_gguf(TinyGguf().write(directory / "m.gguf"))).save_pretrained(directory)
    return load_tokenizer(directory)


@pytest.mark.parametrize("text", STRINGS)
def test_ids_equal_the_twins_and_decode_back(tokenizer: Any, text: str) -> None:
    """Known troublemakers get the twin's ids and come back as they were."""
    ids = tokenizer.encode(text)
    assert ids == TWIN.encode(text).ids
    assert tokenizer.decode(ids) == text


@settings(max_examples=200, deadline=None)
@given(
    text=st.lists(
        st.one_of(st.text(max_size=12), st.sampled_from([*CONTROL, *USER_DEFINED, "  ", "\r\n", "[PAD1]"]))
    ).map("".join)
)
def test_any_text_gets_the_twins_ids(tokenizer: Any, text: str) -> None:
    """Ids are the twin's and decoding is the inverse, whatever the text."""
    text = text.encode("utf-8", "ignore").decode("utf-8")
    ids = tokenizer.encode(text)
    assert ids == TWIN.encode(text).ids
    assert tokenizer.decode(ids) == text


def test_marked_tokens_stay_whole(tokenizer: Any) -> None:
    """Every control and user-defined token is one id, control ones are special."""
    for text in (*CONTROL, *USER_DEFINED):
        assert tokenizer.encode(text) == [TWIN.token_to_id(text)]
    special = {str(t) for t in tokenizer.added_tokens_decoder.values() if t.special}
    assert special == set(CONTROL)


def test_roles_and_template_survive(tokenizer: Any) -> None:
    """Special roles and the chat template are those of the file; spaces are never cleaned up."""
    assert (tokenizer.eos_token, tokenizer.bos_token, tokenizer.pad_token) == (
        "<|im_end|>",
        "<|endoftext|>",
        "<|endoftext|>",
    )
    assert tokenizer.chat_template == TEMPLATE
    assert tokenizer.clean_up_tokenization_spaces is False
    assert tokenizer.decode(tokenizer.encode("a , b . c ' s")) == "a , b . c ' s"


@pytest.mark.parametrize(("add", "starts"), [(True, 1), (False, 0)])
def test_start_token_is_added_where_the_file_asks(tmp_path: Path, add: bool, starts: int) -> None:
    """A start token stands in front exactly when add_bos_token says so, after reloading too."""
    file = TinyGguf(changes={"tokenizer.ggml.add_bos_token": add}).write(tmp_path / "m.gguf")
    gguf_tokenizer(read_gguf(file)).save_pretrained(tmp_path)
    ids = load_tokenizer(tmp_path).encode("hello")
    assert ids == [TWIN.token_to_id("<|endoftext|>")] * starts + TWIN.encode("hello").ids


def test_digits_are_split_where_the_vocabulary_was_trained_so(tmp_path: Path) -> None:
    """The splitting that the file names is applied: 'smollm' separates each digit from the space before."""
    path = TinyGguf(changes={"tokenizer.ggml.pre": "smollm"}).write(tmp_path / "m.gguf")
    pieces = gguf_tokenizer(read_gguf(path)).backend_tokenizer.pre_tokenizer.pre_tokenize_str("x  12")
    assert [text for text, _ in pieces] == ["x", "ĠĠ", "1", "2"]


@pytest.mark.parametrize(
    ("key", "value"),
    [("tokenizer.ggml.pre", "unheard-of"), ("tokenizer.ggml.model", "rwkv"), ("tokenizer.ggml.merges", None)],
)
def test_unknown_tokenizers_are_refused(tmp_path: Path, key: str, value: object) -> None:
    """What cannot be rebuilt exactly is refused with the key's name, not approximated."""
    path = TinyGguf(changes={key: value}).write(tmp_path / "m.gguf")
    with pytest.raises(ModelError, match=key):
        gguf_tokenizer(read_gguf(path))


def test_a_token_that_occurs_twice_is_refused(tmp_path: Path) -> None:
    """A vocabulary that gives a control token two ids is refused."""
    tokens = [TWIN.id_to_token(i) for i in range(TWIN.get_vocab_size())]
    types = [3 if t in CONTROL else 1 for t in tokens]
    path = TinyGguf(
        padding=0,
        changes={
            "tokenizer.ggml.tokens": [*tokens[:-1], "<|im_end|>"],
            "tokenizer.ggml.token_type": [*types[:-1], 3],
        },
    ).write(tmp_path / "m.gguf")
    with pytest.raises(ModelError, match=r"tokenizer\.ggml\.tokens has '<\|im_end\|>'"):
        gguf_tokenizer(read_gguf(path))


def test_end_tokens_are_the_named_one_and_the_known_marks(tmp_path: Path) -> None:
    """A file names one end token; the control tokens that end a turn or a text end answers too."""
    file = read_gguf(TinyGguf().write(tmp_path / "m.gguf"))
    assert end_ids(file) == sorted(map(TWIN.token_to_id, ("<|im_end|>", "<|endoftext|>")))

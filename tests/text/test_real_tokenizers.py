"""The text lane under the tokenizers of published models."""

from __future__ import annotations

import random
import sysconfig
from pathlib import Path

import pytest
from transformers import PreTrainedTokenizerFast

from lookup_spec.errors import ModelError
from lookup_spec.model.load import load_model
from lookup_spec.text.detokenize import Detokenizer, Vocabulary
from lookup_spec.text.edit_prompt import edit_prompt
from lookup_spec.text.edit_task import File, Instruction
from lookup_spec.text.lines import SourceText
from lookup_spec.text.template import ChatTemplate

pytestmark = pytest.mark.slow
SOURCES = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))[:60]
ODD = "naïve café – 日本語 👩‍👩‍👧‍👦 \U0001fae0 \u2067عربي\u2069 \t\r\n\x7f\xad  end"


@pytest.fixture(scope="module", params=["qwen2.5-coder-0.5b-instruct", "smollm2-135m-instruct", "gemma3-270m"])
def tokenizer(request: pytest.FixtureRequest) -> PreTrainedTokenizerFast:
    try:
        return load_model(request.param, dtype="float32", device="cpu").tokenizer
    except ModelError as error:
        pytest.skip(str(error))


def test_source_files_stream_as_the_one_shot_decode(tokenizer):
    """Standard-library files, odd characters and random ids decode as the tokenizer decodes them."""
    vocabulary = Vocabulary(tokenizer)
    texts = [ODD, *(path.read_text(encoding="utf-8", errors="replace")[:20_000] for path in SOURCES)]
    inputs = [tokenizer(text)["input_ids"] for text in texts]
    rng = random.Random(0)
    if tokenizer.backend_tokenizer.decoder.__class__.__name__ == "ByteLevel":
        inputs += [[rng.randrange(len(vocabulary)) for _ in range(30)] for _ in range(200)]
    for ids in inputs:
        stream = Detokenizer(vocabulary)
        text = stream.push_all(ids) + stream.flush()
        assert text == tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)


def test_chats_get_the_ids_of_apply_chat_template(tokenizer):
    """Ordinary conversations are encoded as the transformers library does it."""
    template = ChatTemplate(tokenizer)
    if template.problem is not None:
        pytest.skip(template.problem)
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": ODD}]
    expected = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    assert list(template.encode(messages).ids) == expected


def test_spelled_control_tokens_stay_text(tokenizer):
    """Every control token of the model, spelled in a document, is encoded as letters that decode to it."""
    added = tokenizer.backend_tokenizer.get_added_tokens_decoder()
    control = {token_id: token.content for token_id, token in added.items() if token.special}
    text = " ".join(sorted(control.values())[:500])
    ids = ChatTemplate(tokenizer).encode_data(text)
    assert not set(control).intersection(ids)
    assert Detokenizer(Vocabulary(tokenizer)).push_all(ids) == text


def test_the_file_of_an_edit_prompt_is_found(tokenizer):
    """The span of the file holds exactly the file's own tokens."""
    for path in SOURCES[:10]:
        base = path.read_text(encoding="utf-8")[:8_000].rstrip() + "\n"
        question = edit_prompt(File(SourceText.from_text(base).lines, path.name), Instruction("Tidy up."))
        prompt = question.encode(ChatTemplate(tokenizer))
        [(start, end)] = prompt.spans
        shown = tokenizer.decode(prompt.ids[start:end], clean_up_tokenization_spaces=False)
        assert shown == base

"""Prompts for filling in."""

from __future__ import annotations

import pytest

from lookup_spec.text.fim import FimDocument, FimRoom, FimTokens, fim_prompt
from lookup_spec.text.template import ChatTemplate
from tests.server.tiny_service import FIM, tiny_tokenizer


@pytest.mark.parametrize(
    ("control", "found"),
    [
        ((), False),
        (FIM, True),
        (FIM[:2], False),
        (("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"), True),
        (("<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<fim_pad>"), True),
    ],
)
def test_a_model_can_fill_in_if_its_tokenizer_has_all_three_tokens(control: tuple[str, ...], found: bool) -> None:
    tokenizer = tiny_tokenizer(control)
    tokens = FimTokens.of(ChatTemplate(tokenizer))
    assert (tokens is not None) is found
    if tokens is not None:
        assert tokens.all == set(tokenizer.convert_tokens_to_ids(list(control)))


def test_documents_that_come_first_are_left_out_first_and_handed_back() -> None:
    template = ChatTemplate(tiny_tokenizer(FIM))
    tokens = FimTokens.of(template)
    assert tokens is not None
    documents = [FimDocument(f"text {n}\n" * 5, f"{n}.py") for n in range(4)]
    sizes = [len(template.encode_data(document.text)) for document in documents]
    made = fim_prompt(template, tokens, "a", "b", documents, FimRoom(10, 10, 2 * sizes[0] + 20))
    kept = [made.ids[start:end] for start, end in made.spans[:-2]]
    assert kept == [template.encode_data(document.text) for document in documents[2:]]
    assert made.left_out == tuple(template.encode_data(document.text) for document in documents[:2])
    assert made.truncated


def test_without_room_everything_is_taken_and_no_repository_is_spoken_of() -> None:
    template = ChatTemplate(tiny_tokenizer(FIM))
    tokens = FimTokens.of(template)
    assert tokens is not None
    before, after = template.encode_data("a = 1\n" * 50), template.encode_data("b\n")
    made = fim_prompt(template, tokens, "a = 1\n" * 50, "b\n")
    assert made.ids == (tokens.prefix, *before, tokens.suffix, *after, tokens.middle)
    assert not made.truncated

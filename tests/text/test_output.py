from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from lookup_spec.text.detokenize import Vocabulary
from lookup_spec.text.output import TextOutput


@pytest.fixture(scope="session")
def vocabulary(one_byte: PreTrainedTokenizerFast) -> Vocabulary:
    return Vocabulary(one_byte)


def run(vocabulary: Vocabulary, ids: list[int], stops: list[str], block: int) -> tuple[list[str], TextOutput]:
    """Feeds an answer in accepted runs of ``block`` tokens, taking the text after each run."""
    output, deltas = TextOutput(vocabulary, stops), []
    for start in range(0, len(ids), block):
        stopped = any(output.push(token_id) for token_id in ids[start : start + block])
        deltas.append(output.take())
        if stopped:
            return deltas, output
    deltas.append(output.finish())
    return deltas, output


@pytest.mark.parametrize("block", [1, 2, 3, 5, 6, 7, 100])
@pytest.mark.parametrize(
    ("text", "stops", "delivered"),
    [
        ('return total\n### END\nprint(total)\nprint("done")\n', ["### END"], "return total\n"),
        ("return total\n### END\n### END\n", ["### END"], "return total\n"),
        ("read write close", ["close\nexit"], "read write close"),
        ("read write close\nexit now", ["close\nexit"], "read write "),
        ("日本語✅END", ["✅E"], "日本語"),
    ],
)
def test_deltas_joined_are_the_answer_for_every_block_size(one_byte, vocabulary, text, stops, delivered, *, block):
    """Text up to the stop string, nothing of it, and all of a tail that was no stop string."""
    ids = one_byte(text, add_special_tokens=False)["input_ids"]
    deltas, output = run(vocabulary, ids, stops, block)
    assert "".join(deltas) == delivered
    assert "\ufffd" not in "".join(deltas)
    assert output.kept_tokens == len(delivered.encode())


def test_kept_tokens_leave_out_those_of_the_stop_string(chatml):
    """Of "one", " two", " three" with the stop string "three", the two that the text needs are kept."""
    vocabulary = Vocabulary(chatml)
    ids = [chatml(word, add_special_tokens=False)["input_ids"] for word in ("one", " two", " three")]
    output = TextOutput(vocabulary, ["three"])
    flat = [token_id for word in ids for token_id in word]
    stopped_at = next(n for n, token_id in enumerate(flat, 1) if output.push(token_id))
    assert stopped_at == len(flat)
    text = output.take()
    assert text == "one two "
    expected = len(ids[0]) + len(ids[1]) + (1 if chatml.decode(ids[2][0]).startswith(" ") else 0)
    assert output.kept_tokens == expected


@given(text=st.text("ab✅\n", max_size=20), stops=st.lists(st.text("ab✅\n", min_size=1, max_size=3), max_size=3))
def test_kept_tokens_are_the_shortest_prefix_that_gives_the_text(chatml, chatml_vocabulary, text, stops):
    """The kept tokens decode to at least the delivered text, one fewer does not."""
    ids = chatml(text, add_special_tokens=False)["input_ids"]
    deltas, output = run(chatml_vocabulary, ids, stops, 4)
    delivered = "".join(deltas)
    if output.stop is None:
        assert delivered == text
        return
    needed = len(delivered.encode())
    lengths = [sum(len(chatml_vocabulary.piece(i)) for i in ids[:n]) for n in range(len(ids) + 1)]
    assert lengths[output.kept_tokens] >= needed
    assert output.kept_tokens == 0 or lengths[output.kept_tokens - 1] < needed


@pytest.fixture(scope="session")
def chatml_vocabulary(chatml: PreTrainedTokenizerFast) -> Vocabulary:
    return Vocabulary(chatml)


def test_finish_gives_half_characters_too(one_byte, vocabulary):
    """An answer that ends inside a character ends with U+FFFD, after all that was held back."""
    output = TextOutput(vocabulary, ["ab\n"])
    for token_id in one_byte("ab✅", add_special_tokens=False)["input_ids"][:-1]:
        output.push(token_id)
    assert output.take() + output.finish() == "ab\ufffd"

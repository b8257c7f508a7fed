"""From what a client sent to what the engine is told: token ids, the text to edit, and the expected answer."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from lookup_spec.propose.prompt import Prompt, Reference, Span
from lookup_spec.propose.retokenizer import Retokenizer
from lookup_spec.text.conversation import Layout
from lookup_spec.text.layouts import layout_of, layout_of_text
from lookup_spec.text.messages import Message, Passage, passage_of
from lookup_spec.text.template import ChatTemplate
from lookup_spec.text.tools import Tool


class Told(NamedTuple):
    """A prompt, and what is expected of its answer.

    Attributes:
        prompt: ids, the span of the text to edit, and the expected answer as a prediction, as far as known.
        predicted: tokens of that text in the expected answer; 0 if nothing is expected.
        stop_token_ids: tokens that end the answer, besides the model's own end tokens.
    """

    prompt: Prompt
    predicted: int = 0
    stop_token_ids: frozenset[int] = frozenset()


class Prompts:
    """Makes one model's prompts.

    Args:
        template: the model's.
        retokenizer: knows its tokenizer.
        vocab_size: ids from here on stand for no token.
        end: the token that ends an answer, if there is one.
    """

    def __init__(
        self, template: ChatTemplate, retokenizer: Retokenizer, *, vocab_size: int, end: tuple[int, ...] = ()
    ) -> None:
        self._template = template
        self._retokenizer = retokenizer
        self._vocab_size = vocab_size
        self._end = end

    def encode(self, text: str) -> tuple[int, ...]:
        """Token ids of a raw prompt: control tokens count as such, and a start token stands exactly once if the
        model has one."""
        return self._template.encode_raw(text)

    def whole_answer(self, text: str) -> tuple[int, ...]:
        """Token ids of a text as an answer would have them, end token included; what a prediction should be."""
        return (*self._template.encode_data(text), *self._end)

    def chat(
        self,
        messages: Sequence[Message],
        *,
        prediction: str | None = None,
        continuing: bool = False,
        tools: Sequence[Tool] = (),
    ) -> Told:
        """A conversation's prompt; see :func:`chat_prompt`."""
        return chat_prompt(
            self._template, messages, prediction=prediction, continuing=continuing, tools=tools, end=self._end
        )

    def text(self, ids: Sequence[int]) -> Told:
        """A prompt without messages; see :func:`text_prompt`. Nothing is told of one that holds unknown tokens."""
        if not 0 <= min(ids, default=0) <= max(ids, default=0) < self._vocab_size:
            return Told(Prompt(tuple(ids)))
        return text_prompt(ids, self._retokenizer, end=self._end)

    def of(self, prompt: str | Sequence[int] | Prompt, prediction: str | Sequence[int] | None = None) -> Prompt:
        """A prompt from whatever a caller has: raw text, token ids, or ids with known segments.

        Args:
            prompt: what the answer follows.
            prediction: a guess of the answer; without one, the prompt's layout is asked.
        """
        if not isinstance(prompt, Prompt):
            ids = self.encode(prompt) if isinstance(prompt, str) else prompt
            prompt = Prompt(tuple(ids)) if prediction else self.text(ids).prompt
        if not prediction:
            return prompt
        guess = self._template.encode_data(prediction) if isinstance(prediction, str) else tuple(prediction)
        return Prompt(prompt.ids, prompt.spans, (*prompt.references, Reference(guess, "prediction")))


def chat_prompt(
    template: ChatTemplate,
    messages: Sequence[Message],
    *,
    prediction: str | None = None,
    continuing: bool = False,
    tools: Sequence[Tool] = (),
    end: Sequence[int] = (),
) -> Told:
    """The prompt of a conversation.

    Args:
        template: the model's.
        messages: ``role`` and ``content`` each.
        prediction: the client's guess of the answer; without, the layout of the messages is asked.
        continuing: the last message is the beginning of the answer.
        tools: functions that the model is told of.
        end: the model's end token, if it has one.

    Raises:
        InvalidRequestError: the messages cannot be rendered.
    """
    layout = layout_of(messages)
    if prediction is not None and (layout is None or layout.text.strip() != prediction.strip()):
        layout = Layout(passage_of(messages, prediction) or Passage(0, 0, 0), prediction)
    encoded = template.encode(
        messages,
        passages=() if layout is None else (layout.passage,),
        tools=tools,
        add_generation_prompt=not continuing,
        continue_final_message=continuing,
    )
    spans = tuple(Span(*span, "base") for span in encoded.spans if span is not None and span[0] < span[1])
    if layout is None:
        return Told(Prompt(encoded.ids))
    answer = template.encode_answer(layout.text, layout.opening, layout.closing)
    [span] = answer.spans
    assert span is not None
    expected = Reference((*answer.ids, *end), "prediction", span[0])
    return Told(Prompt(encoded.ids, spans, (expected,)), span[1] - span[0])


def text_prompt(ids: Sequence[int], retokenizer: Retokenizer, *, end: Sequence[int] = ()) -> Told:
    """A prompt without messages, whose form may tell what it is about.

    Args:
        ids: the prompt.
        retokenizer: knows the tokenizer.
        end: the model's end token, if it has one.
    """
    ids = tuple(ids)
    pieces = retokenizer.pieces(ids)
    text = "".join(pieces)
    layout = layout_of_text(text)
    if layout is None:
        return Told(Prompt(ids))
    starts = [0, *accumulate(map(len, pieces))]
    first, last = layout.passage.start, layout.passage.end
    low, high = bisect_left(starts, first), bisect_right(starts, last) - 1
    if low < high and layout.text == text[first:last]:
        # The prompt's own tokens are the safest guess; at its edges some may hold other text, too.
        opening = retokenizer.encode(layout.opening + text[first : starts[low]])
        body, rest = ids[low:high], text[starts[high] : last]
    else:
        opening, body, rest = retokenizer.encode(layout.opening), (), layout.text
    closing = retokenizer.encode(rest + layout.closing)
    expected = Reference((*opening, *body, *closing, *end), "prediction", len(opening))
    spans = (Span(low, high, "base"),) if low < high else ()
    return Told(Prompt(ids, spans, (expected,)), max(0, high - low))

"""Chat messages to token ids, through the model's own template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import TemplateSyntaxError

from lookup_spec.errors import InvalidRequestError, ModelError
from lookup_spec.text.encode import Encoder
from lookup_spec.text.messages import (
    Marks,
    Message,
    Passage,
    Span,
    content_of,
    map_texts,
    role_of,
    texts_of,
    unused_letters,
)
from lookup_spec.text.tools import Tool, ToolForm, tool_form

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_PROBE = "system probe"


@dataclass(frozen=True, slots=True)
class EncodedPrompt:
    """A prompt as the model reads it.

    Attributes:
        ids: all token ids, the start token included.
        spans: for each passage that was asked for, ``ids[start:end]`` are the tokens that lie in it; None
            where the template left the passage out.
    """

    ids: tuple[int, ...]
    spans: tuple[Span | None, ...] = ()


class ChatTemplate:
    """The chat form of one model's prompts.

    A system message is merged into the first user message (with an empty line between) if the template
    rejects or ignores that role; ``developer`` is read as ``system`` unless the template knows it.

    Args:
        tokenizer: a fast tokenizer of the transformers library.
        override: instead of the model's own template: a Jinja text, the name of one of the model's several
            templates, or the path of a Jinja file.

    Raises:
        ModelError: the override is missing or broken, or the tokenizer is not a fast one.

    Attributes:
        problem: why this model cannot chat, as a sentence; None if it can. Worth a warning at start: plain
            prompts work all the same.
        takes_system: whether the template itself shows system messages.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, *, override: str | None = None) -> None:
        self._tokenizer = tokenizer
        self._encoder = Encoder(tokenizer)
        self._source = ""
        self.problem: str | None = None
        self.takes_system = True
        try:
            self._source = _source(tokenizer.chat_template, override)
            self.takes_system = self._probe_system()
        except ModelError as error:
            if override is not None:
                raise
            self.problem = str(error)

    def encode(
        self,
        messages: Sequence[Message],
        *,
        passages: Sequence[Passage] = (),
        tools: Sequence[Tool] = (),
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
        plain: bool = False,
    ) -> EncodedPrompt:
        """The prompt of a conversation.

        Message texts are data: a control token spelled in one is encoded as the letters it is made of. What
        the template writes is encoded as usual, so for ordinary messages the ids are those of the
        transformers library's ``apply_chat_template``.

        Args:
            messages: ``role`` and ``content`` each; content is a text or a list of text parts, which are
                joined by line breaks.
            passages: places in the contents whose tokens are wanted.
            tools: functions that the model is told of; what is written of them is data, too.
            add_generation_prompt: open the assistant's turn.
            continue_final_message: the last message is the beginning of the answer, and no turn is opened.
            plain: set the contents one below the other instead of using the model's template.

        Raises:
            InvalidRequestError: the model cannot chat, or its template cannot render these messages.
        """
        if self.problem is not None and not plain:
            raise InvalidRequestError(self.problem, param="messages")
        checked = [self._checked(message) for message in messages]
        if not checked:
            raise InvalidRequestError("messages is empty; give at least one message.", param="messages")
        if continue_final_message and checked[-1]["role"] != "assistant":
            raise InvalidRequestError(
                f"The last message has the role {checked[-1]['role']!r}; only an assistant's can go on.",
                param="messages",
            )
        told = [tool.told() for tool in tools]
        letters = unused_letters("".join(texts_of([checked, told])))
        guard, end = next(letters), next(letters)
        marks = Marks(passages, guard, letters)
        private, told = map_texts(partial(self._encoder.guard, guard=guard), (checked, told))
        for index, message in enumerate(private):
            message["content"] = marks.put(message["content"], index)
        if continue_final_message:
            private[-1]["content"] += end
        if plain:
            text = "\n\n".join(message["content"] for message in private)
        else:
            text = self._render(self._merged(private), add_generation_prompt and not continue_final_message, told)
        text, spans = marks.take(_cut(text, end) if continue_final_message else text)
        bare, spans = self._encoder.guarded(text, guard, spans)
        ids = self._encoder.with_start(bare)
        shift = len(ids) - len(bare)
        return EncodedPrompt(ids, tuple(span and (span[0] + shift, span[1] + shift) for span in spans))

    def encode_raw(self, text: str) -> tuple[int, ...]:
        """A plain prompt, the caller's own: control tokens are read as such, and there is one start token."""
        return self._encoder.raw(text)

    def encode_data(self, text: str) -> tuple[int, ...]:
        """A text as data, without start token: no control token comes out, whatever it spells."""
        return self._encoder.data(text)

    def encode_answer(self, text: str, opening: str = "", closing: str = "") -> EncodedPrompt:
        """An answer that holds a text, as the model would write it: the text is data, what stands around it is
        ours. The only span is that of the text."""
        guard = next(unused_letters(opening + text + closing))
        body = self._encoder.guard(text, guard)
        span = (len(opening), len(opening) + len(body))
        return EncodedPrompt(*self._encoder.guarded(opening + body + closing, guard, (span,)))

    @property
    def tool_form(self) -> ToolForm | None:
        """How this model writes calls of functions; None if it cannot, or in a form that is not known here."""
        return tool_form(self._source, self.control_token)

    @property
    def source(self) -> str:
        """The template itself; empty if the model has none."""
        return self._source

    def control_token(self, spelling: str) -> int | None:
        """The id of a control token; None if the tokenizer has none of that spelling."""
        return self._encoder.control_token(spelling)

    @property
    def start(self) -> tuple[int, ...]:
        """What begins every prompt of this model: the start token, or nothing."""
        return self._encoder.start

    def _checked(self, message: Message) -> dict[str, Any]:
        role = role_of(message)
        if role == "developer" and "developer" not in self._source:
            role = "system"
        return {**message, "role": role, "content": content_of(message)}

    def _merged(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if self.takes_system or messages[0]["role"] != "system":
            return messages
        system, *rest = messages
        if not rest or rest[0]["role"] != "user":
            return [{**system, "role": "user"}, *rest]
        return [{**rest[0], "content": f"{system['content']}\n\n{rest[0]['content']}"}, *rest[1:]]

    def _probe_system(self) -> bool:
        """Whether a system message gets through; compiles the template on the way."""
        probe = [{"role": "system", "content": _PROBE}, {"role": "user", "content": "user probe"}]
        with suppress(InvalidRequestError):
            return _PROBE in self._render(probe, True)
        return False

    def _render(
        self, messages: list[dict[str, Any]], add_generation_prompt: bool, tools: list[Any] | None = None
    ) -> str:
        try:
            return str(
                self._tokenizer.apply_chat_template(
                    messages,
                    tools=tools or None,
                    chat_template=self._source,
                    tokenize=False,
                    add_generation_prompt=add_generation_prompt,
                )
            )
        except TemplateSyntaxError as error:
            raise ModelError(
                f"The chat template has an error in line {error.lineno} ({error.message}); give another with "
                "--chat-template FILE."
            ) from error
        except ImportError:
            raise
        except Exception as error:  # a template is a program: what it raises is its verdict on the messages
            roles = ", ".join(str(message["role"]) for message in messages)
            raise InvalidRequestError(
                f"This model's chat template cannot render messages with the roles {roles}: {error}",
                param="messages",
            ) from error


def _source(own: Any, override: str | None) -> str:
    """The template's text, from the model's own (a text, several with names, or None) and the override."""
    if override is not None and ("{{" in override or "{%" in override):
        return override
    if override is not None and not (isinstance(own, Mapping) and override in own):
        try:
            return Path(override).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise ModelError(
                f"The chat template {override!r} cannot be read ({error}); give the path of a Jinja file."
            ) from error
    if isinstance(own, Mapping):
        name = override or "default"
        if name not in own:
            raise ModelError(
                f"This model has several chat templates ({', '.join(sorted(own))}) and none is the default; "
                "choose one with --chat-template NAME."
            )
        return str(own[name])
    if not own:
        raise ModelError(
            "This model has no chat template; send a plain prompt as a completion, or give a template with "
            "--chat-template FILE."
        )
    return str(own)


def _cut(rendered: str, end: str) -> str:
    """The rendered text up to the end of the message that is to be continued."""
    if end not in rendered:
        raise InvalidRequestError(
            "This model's chat template does not show the last message, so it cannot be continued.",
            param="messages",
        )
    return rendered[: rendered.rindex(end)]

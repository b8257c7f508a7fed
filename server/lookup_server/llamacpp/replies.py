"""Replies in llama.cpp's form, whole or as a stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lookup_server.errors import from_exception
from lookup_spec.engine.session import Piece
from lookup_spec.stats import Stats

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Form:
    """How a reply is to look.

    Attributes:
        model: the name that the caller used.
        settings: the ``generation_settings``.
        fields: only these; None for all.
        tokens: token ids go along.
        batched: a whole reply is a list.
    """

    model: str
    settings: Mapping[str, Any]
    fields: Sequence[str] | None
    tokens: bool
    batched: bool


@dataclass(slots=True)
class _Answer:
    prompt: str
    truncated: bool
    texts: list[str] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    last: Piece | None = None


class LlamaReply:
    """One request's answers; the form of :class:`lookup_server.answering.Reply`.

    Args:
        form: how it is to look.
        prompts: the text that each answer goes on from, and whether it was cut.
    """

    done = b""

    def __init__(self, form: Form, prompts: Sequence[tuple[str, bool]]) -> None:
        self._form = form
        self._answers = [_Answer(prompt, truncated) for prompt, truncated in prompts]

    def opening(self) -> Iterator[Json]:
        """Nothing."""
        yield from ()

    def chunks(self, index: int, piece: Piece) -> Iterator[Json]:
        """A piece's text; behind the last one, everything else about the answer."""
        answer = self._answers[index]
        answer.texts.append(piece.text)
        tokens = list(piece.token_ids) if self._form.tokens else []
        answer.tokens += tokens
        if piece.text or tokens:
            yield {"content": piece.text, "index": index, "tokens": tokens, "stop": False}
        if piece.finish_reason is not None:
            answer.last = piece
            told = self._told(index, answer, "", [])
            # Readers of streams look for these two in every chunk, and know the end by the second.
            yield {"content": "", **self._picked(told), "stop": True}

    def closing(self) -> Iterator[Json]:
        """Nothing."""
        yield from ()

    def breaking(self, error: Exception) -> Iterator[Json]:
        """What a stream says instead of its end."""
        yield from_exception(error).body()

    def whole(self) -> Any:
        """The answer, or a list of them."""
        told = [
            self._picked(self._told(index, answer, "".join(answer.texts), answer.tokens))
            for index, answer in enumerate(self._answers)
        ]
        return told if self._form.batched else told[0]

    def _picked(self, told: Json) -> Json:
        return told if self._form.fields is None else pick(told, self._form.fields)

    def _told(self, index: int, answer: _Answer, content: str, tokens: list[int]) -> Json:
        last = answer.last
        assert last is not None
        stats = last.stats
        # All tokens but the last one, which no step has read yet.
        cached = stats.prompt_tokens + stats.completion_tokens - 1 if stats.completion_tokens else 0
        return {
            "content": content,
            "index": index,
            "tokens": tokens,
            "id_slot": 0,
            "stop": True,
            "model": self._form.model,
            "tokens_predicted": stats.completion_tokens,
            "tokens_evaluated": stats.prompt_tokens,
            "generation_settings": self._form.settings,
            "prompt": answer.prompt,
            "has_new_line": any("\n" in text for text in answer.texts),
            "truncated": answer.truncated,
            "stop_type": _stop_type(last),
            "stopping_word": last.stop or "",
            "tokens_cached": cached,
            "timings": timings(stats),
        }


def timings(stats: Stats) -> Json:
    """Counts and times with llama.cpp's names."""
    # The first token comes with the prompt.
    prompt = _pace(stats.prompt_tokens - stats.cached_tokens if stats.forward_passes else 0, stats.prefill_seconds)
    predicted = _pace(stats.completion_tokens, stats.decode_seconds)
    return {
        "cache_n": stats.cached_tokens,
        **{f"prompt_{name}": value for name, value in prompt.items()},
        **{f"predicted_{name}": value for name, value in predicted.items()},
        "draft_n": stats.drafted,
        "draft_n_accepted": stats.accepted,
    }


def pick(told: Json, fields: Sequence[str]) -> Json:
    """Some fields of a reply, ``content`` first; those inside another keep their path as their name."""
    picked: Json = {}
    for path in sorted(fields, key=lambda path: path != "content"):
        value: Any = told
        for name in path.split("/"):
            if not isinstance(value, Mapping) or name not in value:
                break
            value = value[name]
        else:
            picked[path] = value
    return picked


def _pace(tokens: int, seconds: float) -> Json:
    return {
        "n": tokens,
        "ms": seconds * 1000,
        "per_token_ms": seconds * 1000 / tokens if tokens else 0.0,
        "per_second": tokens / seconds if seconds else 0.0,
    }


def _stop_type(last: Piece) -> str:
    if last.stop is not None:
        return "word"
    return "eos" if last.finish_reason == "stop" else "limit"

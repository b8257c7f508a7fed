"""From a body in llama.cpp's form to what to generate, and the reply that it is for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lookup_server.llamacpp.limits import Limits, warmed_up
from lookup_server.llamacpp.replies import Form, LlamaReply
from lookup_server.llamacpp.requests import CompletionBody, GenerationBody, InfillBody
from lookup_server.llamacpp.tokens import text_of
from lookup_server.openai.seeds import seeded
from lookup_server.prompt_ids import ids_of
from lookup_server.runner import Task
from lookup_spec.params import SamplingParams
from lookup_spec.pipeline.engine import Engine
from lookup_spec.pipeline.fill import fill, room_for
from lookup_spec.propose.prompt import Prompt
from lookup_spec.text.fim import FimDocument


def infill_tasks(
    body: InfillBody, engine: Engine, model: str, defaults: Mapping[str, Any]
) -> tuple[list[Task], LlamaReply]:
    """What to fill in.

    Args:
        body: what was asked.
        engine: what will answer.
        model: what the caller calls it.
        defaults: of the sampling, where the body does not say.

    Raises:
        InvalidRequestError: it can never be served.
    """
    documents = [FimDocument(extra.text, extra.filename) for extra in body.input_extra or ()]
    before = body.input_prefix + (body.prompt or "")
    room = room_for(engine.context_length, body.max_tokens)
    filled = fill(engine, before, body.input_suffix, documents, room)
    options = {**body.sampling(defaults), "stop_token_ids": () if body.ignore_eos else filled.told.stop_token_ids}
    prompts = [filled.told.prompt]
    return _tasks(body, engine, model, options, prompts, batched=body.batched, truncated=filled.truncated)


def completion_tasks(
    body: CompletionBody, engine: Engine, model: str, defaults: Mapping[str, Any]
) -> tuple[list[Task], LlamaReply]:
    """What to go on with; all answers to the first prompt come first.

    Args:
        body: what was asked.
        engine: what will answer.
        model: what the caller calls it.
        defaults: of the sampling, where the body does not say.

    Raises:
        InvalidRequestError: it can never be served.
    """
    prompts = [engine.prompts.text(ids_of(engine, prompt)).prompt for prompt in body.prompts]
    options = {**body.sampling(defaults), "grammar": body.form}
    return _tasks(body, engine, model, options, prompts, batched=body.batched)


def settings_of(params: SamplingParams, engine: Engine) -> dict[str, Any]:
    """Settings with llama.cpp's names."""
    return {
        "n_ctx": engine.context_length,
        "n_predict": -1 if params.max_tokens is None else params.max_tokens,
        "seed": -1 if params.seed is None else params.seed,
        "temperature": params.temperature,
        "top_k": params.top_k,
        "top_p": params.top_p,
        "min_p": params.min_p,
        "repeat_penalty": params.repetition_penalty,
        "presence_penalty": params.presence_penalty,
        "frequency_penalty": params.frequency_penalty,
        "ignore_eos": params.ignore_eos,
        "stop": list(params.stop),
    }


def _tasks(
    body: GenerationBody,
    engine: Engine,
    model: str,
    options: dict[str, Any],
    prompts: Sequence[Prompt],
    *,
    batched: bool,
    truncated: bool = False,
) -> tuple[list[Task], LlamaReply]:
    warming = body.n_predict == 0
    if warming:
        options = {**options, "max_tokens": 1}
    tasks = [
        Task(
            prompt,
            engine.sampling(**options, seed=seed),
            body.speculation is not False,
            continuing=True,
            # Nobody waits for a warm-up.
            priority="batch" if warming else "interactive",
            prompt_seconds=None if warming else _seconds(body.t_max_prompt_ms),
            limit=warmed_up if warming else Limits(body.n_indent or 0, body.t_max_predict_ms or 0),
        )
        for prompt in prompts
        for seed in seeded(body.drawn_seed, body.choices)
    ]
    settings = settings_of(tasks[0].params, engine)
    extra = {
        "n_predict": -1 if body.max_tokens is None else body.max_tokens,
        "n_indent": body.n_indent or 0,
        "t_max_prompt_ms": body.t_max_prompt_ms or -1,
        "t_max_predict_ms": body.t_max_predict_ms or -1,
    }
    form = Form(model, {**settings, **extra}, body.response_fields, bool(body.return_tokens), batched)
    texts = [text_of(engine, prompt.ids) for prompt in prompts for _ in range(body.choices)]
    return tasks, LlamaReply(form, [(text, truncated) for text in texts])


def _seconds(milliseconds: int | None) -> float | None:
    """A limit; 0 and less are none."""
    return milliseconds / 1000 if milliseconds is not None and milliseconds > 0 else None

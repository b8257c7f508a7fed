"""What OpenAI's API refuses and we do not, for those who want to know before they move."""

from __future__ import annotations

from lookup_server.errors import bad_request
from lookup_server.openai.requests import ChatRequest, CompletionRequest

_MAX_STOPS = 4
_COMMON = frozenset(
    (
        *("model", "n", "stream", "stream_options", "max_tokens", "temperature", "top_p", "stop", "seed", "logit_bias"),
        *("presence_penalty", "frequency_penalty", "user", "logprobs"),
    )
)
_TEXT = _COMMON | {"prompt", "best_of", "echo", "suffix"}
_CHAT = _COMMON | {
    *("messages", "max_completion_tokens", "top_logprobs", "prediction", "response_format", "modalities", "tools"),
    *("tool_choice", "parallel_tool_calls", "functions", "function_call", "audio", "reasoning_effort", "verbosity"),
    *("service_tier", "metadata", "store", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"),
}
_RANGES = {"temperature": (0.0, 2.0), "presence_penalty": (-2.0, 2.0), "frequency_penalty": (-2.0, 2.0)}


def refuse_as_openai(body: ChatRequest | CompletionRequest) -> None:
    """Refuses what OpenAI refuses.

    Raises:
        ApiError: an extension, a value out of OpenAI's range, or a field that does not go with a prediction.
    """
    known = _CHAT if isinstance(body, ChatRequest) else _TEXT
    for name in sorted(body.model_fields_set - known):
        raise bad_request(f"The field {name} is not one of OpenAI's, and this server is strict; leave it out.", name)
    if body.stream_options is not None and body.stream_options.include_speculation is not None:
        name = "stream_options.include_speculation"
        raise bad_request(f"The field {name} is not one of OpenAI's, and this server is strict; leave it out.", name)
    if not body.model:
        raise bad_request("The field model is missing; add it.", "model")
    for name, (low, high) in _RANGES.items():
        value = getattr(body, name)
        if value is not None and not low <= value <= high:
            raise bad_request(f"{name} is {value:g}; OpenAI takes {low:g} to {high:g}.", name)
    if isinstance(body.stop, list) and len(body.stop) > _MAX_STOPS:
        raise bad_request(f"stop has {len(body.stop)} strings; OpenAI takes at most {_MAX_STOPS}.", "stop")
    if isinstance(body, ChatRequest) and body.prediction is not None:
        _refuse_beside_prediction(body)


def _refuse_beside_prediction(body: ChatRequest) -> None:
    used = {
        "logprobs": bool(body.logprobs),
        "presence_penalty": (body.presence_penalty or 0) > 0,
        "frequency_penalty": (body.frequency_penalty or 0) > 0,
        "max_completion_tokens": body.max_completion_tokens is not None,
        "tools": bool(body.tools),
    }
    for name, there in used.items():
        if there:
            raise bad_request(f"The field {name} does not go with a prediction; leave one of them out.", name)

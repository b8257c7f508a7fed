"""Tiny random models of the supported architectures, and their plain answers by ``transformers.generate``."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import torch
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    Gemma3TextConfig,
    GPT2Config,
    LlamaConfig,
    MistralConfig,
    MixtralConfig,
    Phi3Config,
    PreTrainedConfig,
    PreTrainedModel,
    Qwen2Config,
    Qwen2MoeConfig,
    Qwen3Config,
)

from lookup_spec.model.forward import PackedModel

torch.set_num_threads(1)  # matrices this small only lose by being shared out

VOCAB = 61
PAD, END, START = 0, 1, 2
CONTEXT = 192
WINDOW = 7  # shorter than any text in the tests

_SPECIAL = {"pad_token_id": PAD, "eos_token_id": END, "bos_token_id": START}
_SHAPE = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": CONTEXT,
    **_SPECIAL,
}
_GEMMA = {**_SHAPE, "head_dim": 8, "sliding_window": WINDOW, "query_pre_attn_scalar": 8}

CONFIGS: dict[str, Callable[[], PreTrainedConfig]] = {
    "llama": lambda: LlamaConfig(**_SHAPE),
    "qwen2": lambda: Qwen2Config(**_SHAPE),
    "qwen3": lambda: Qwen3Config(**_SHAPE, head_dim=8),
    "mistral, sliding window": lambda: MistralConfig(**_SHAPE, sliding_window=WINDOW),
    "phi-3": lambda: Phi3Config(**_SHAPE),
    "gemma 2, softcap": lambda: Gemma2Config(
        **_GEMMA,
        attn_logit_softcapping=5.0,
        final_logit_softcapping=20.0,
        layer_types=["sliding_attention", "full_attention"],
    ),
    "gemma 3, alternating windows": lambda: Gemma3TextConfig(
        **{**_GEMMA, "num_hidden_layers": 3},
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
    ),
    "gpt-2, learned positions": lambda: GPT2Config(
        vocab_size=VOCAB, n_embd=32, n_layer=2, n_head=4, n_positions=CONTEXT, **_SPECIAL
    ),
    "mixtral, experts": lambda: MixtralConfig(**_SHAPE, num_local_experts=4),
    "qwen2 moe, experts": lambda: Qwen2MoeConfig(
        **_SHAPE,
        num_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=32,
        shared_expert_intermediate_size=32,
    ),
}


@cache
def tiny(name: str) -> PreTrainedModel:
    """A float32 model whose weights are so large that its answers are varied; its attention is eager."""
    torch.manual_seed(len(name))
    model = AutoModelForCausalLM.from_config(CONFIGS[name](), attn_implementation="eager").eval().float()
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.mul_(4)
    return model


@cache
def packed(name: str) -> PackedModel:
    """The same weights, run by us."""
    return PackedModel(copy.deepcopy(tiny(name)))


@torch.no_grad()
def generate(name: str, prompts: Sequence[Sequence[int]], **options: Any) -> list[list[int]]:
    """Plain answers by ``transformers.generate``, end token left out; prompts of one length share a call."""
    answers: dict[int, list[int]] = {}
    for length in {len(prompt) for prompt in prompts}:
        picked = [i for i, prompt in enumerate(prompts) if len(prompt) == length]
        ids = torch.tensor([list(prompts[i]) for i in picked])
        out = tiny(name).generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=False, pad_token_id=PAD, **options
        )
        answers.update(zip(picked, map(until_end, out[:, length:].tolist()), strict=True))
    return [answers[i] for i in range(len(prompts))]


@torch.no_grad()
def eager_logits(name: str, ids: Iterable[int]) -> torch.Tensor:
    """Logits ``[tokens, vocab]`` of one whole text, without a cache."""
    return tiny(name)(torch.tensor([list(ids)]), use_cache=False).logits[0]


def until_end(ids: Sequence[int]) -> list[int]:
    """The ids before the first end token."""
    return list(ids[: ids.index(END)] if END in ids else ids)

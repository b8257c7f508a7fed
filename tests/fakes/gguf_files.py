"""Tiny models with random weights, written as GGUF files and as the directories they might come from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

CONTROL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
USER_DEFINED = ("<think>", "</think>", "<tool_call>")
QWEN2_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"


def twin() -> Tokenizer:
    """The tokenizer that the GGUF file is to reproduce: byte-level, with control and user-defined tokens."""
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(QWEN2_SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = BpeTrainer(
        vocab_size=400,
        show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )
    tokenizer.train_from_iterator([Path(__file__).read_text(encoding="utf-8"), "Straße œuvre  two  spaces"], trainer)
    tokenizer.add_special_tokens([AddedToken(text, normalized=False, special=True) for text in CONTROL])
    tokenizer.add_tokens([AddedToken(text, normalized=False, special=False) for text in USER_DEFINED])
    return tokenizer


@dataclass
class TinyGguf:
    """What to write, and what to get wrong on purpose.

    Attributes:
        architecture: ``qwen2`` or ``llama``.
        padding: unused tokens at the end of the vocabulary.
        missing_rows: embeddings that the model lacks for its last tokens.
        changes: metadata to replace; None leaves a key out.
        quantized: store matrices as Q8_0.
        tied: the file has no head of its own.
        extra_tensors: names of further tensors.
    """

    architecture: str = "qwen2"
    padding: int = 3
    missing_rows: int = 0
    changes: Mapping[str, Any] = field(default_factory=dict)
    quantized: bool = False
    tied: bool = False
    extra_tensors: tuple[str, ...] = ()

    def write(self, path: Path) -> Path:
        """Writes the file."""
        tokenizer = twin()
        tokens = [tokenizer.id_to_token(index) for index in range(tokenizer.get_vocab_size())]
        types = [3 if t in CONTROL else 4 if t in USER_DEFINED else 1 for t in tokens]
        for number in range(self.padding):
            tokens.append(f"[PAD{number}]")
            types.append(5)
        model = self.model(len(tokens) - self.missing_rows)
        ids = {text: tokens.index(text) for text in CONTROL}
        values: dict[str, Any] = {
            f"{self.architecture}.context_length": 128,
            f"{self.architecture}.embedding_length": 64,
            f"{self.architecture}.block_count": 2,
            f"{self.architecture}.feed_forward_length": 96,
            f"{self.architecture}.attention.head_count": 4,
            f"{self.architecture}.attention.head_count_kv": 2,
            f"{self.architecture}.attention.layer_norm_rms_epsilon": 1e-6,
            f"{self.architecture}.rope.freq_base": 10000.0,
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": "qwen2",
            "tokenizer.ggml.tokens": tokens,
            "tokenizer.ggml.token_type": types,
            "tokenizer.ggml.merges": merges(tokenizer),
            "tokenizer.ggml.eos_token_id": ids["<|im_end|>"],
            "tokenizer.ggml.bos_token_id": ids["<|endoftext|>"],
            "tokenizer.ggml.padding_token_id": ids["<|endoftext|>"],
            "tokenizer.ggml.add_bos_token": False,
            "tokenizer.chat_template": TEMPLATE,
            **self.changes,
        }
        writer = gguf.GGUFWriter(path, self.architecture)
        for key, value in values.items():
            _add(writer, key, value)
        for name, tensor in _tensors(model, self.tied).items():
            if self.quantized and tensor.ndim == 2:
                kind = gguf.GGMLQuantizationType.Q8_0
                writer.add_tensor(name, gguf.quantize(tensor, kind), raw_dtype=kind)
            else:
                writer.add_tensor(name, tensor)
        for name in self.extra_tensors:
            writer.add_tensor(name, np.ones(8, dtype=np.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    def model(self, vocab_size: int) -> LlamaForCausalLM | Qwen2ForCausalLM:
        """The network whose weights are written."""
        shape = {
            "vocab_size": vocab_size,
            "hidden_size": 64,
            "intermediate_size": 96,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 128,
            "tie_word_embeddings": self.tied,
        }
        with torch.random.fork_rng():
            torch.manual_seed(1)
            if self.architecture == "llama":
                return LlamaForCausalLM(LlamaConfig(**shape))
            return Qwen2ForCausalLM(Qwen2Config(**shape))


def write_directory(path: Path, **changes: Any) -> Path:
    """A small Llama as an ordinary model directory; ``changes`` go into its configuration."""
    tokenizer = twin()
    settings = {"eos_token_id": tokenizer.token_to_id("<|im_end|>"), "bos_token_id": None, **changes}
    model = TinyGguf("llama").model(tokenizer.get_vocab_size())
    for key, value in settings.items():
        setattr(model.config, key, value)
    model.generation_config.eos_token_id = tokenizer.token_to_id("<|endoftext|>")
    model.generation_config.bos_token_id = None
    model.save_pretrained(path)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>").save_pretrained(path)
    return path


def merges(tokenizer: Tokenizer) -> list[str]:
    """A byte-level tokenizer's merges, as GGUF files write them."""
    pairs = json.loads(tokenizer.to_str())["model"]["merges"]
    return [" ".join(pair) if isinstance(pair, list) else pair for pair in pairs]


def _add(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    elif value is not None:
        writer.add_array(key, value)


_LAYER = {
    "attn_norm.weight": "input_layernorm.weight",
    "ffn_norm.weight": "post_attention_layernorm.weight",
    "attn_output.weight": "self_attn.o_proj.weight",
    "ffn_gate.weight": "mlp.gate_proj.weight",
    "ffn_up.weight": "mlp.up_proj.weight",
    "ffn_down.weight": "mlp.down_proj.weight",
    **{f"attn_{k}.weight": f"self_attn.{k}_proj.weight" for k in "qkv"},
    **{f"attn_{k}.bias": f"self_attn.{k}_proj.bias" for k in "qkv"},
}


def _tensors(model: LlamaForCausalLM | Qwen2ForCausalLM, tied: bool) -> dict[str, np.ndarray]:
    state = model.state_dict()
    names = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}
    if not tied:
        names["output.weight"] = "lm_head.weight"
    for layer in range(model.config.num_hidden_layers):
        names |= {f"blk.{layer}.{key}": f"model.layers.{layer}.{value}" for key, value in _LAYER.items()}
    return {key: state[value].numpy() for key, value in names.items() if value in state}

"""A tiny random model behind a real HTTP server."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from fastapi import FastAPI
from lookup_server.main import Server, bind, make_server, url_of
from lookup_server.routes.state import State
from lookup_server.runner import Runner
from lookup_server.settings import Settings
from lookup_server.tracing import Tracing
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from lookup_spec.model.load import LoadedModel
from lookup_spec.pipeline.engine import Engine

CONTEXT = 2048
CORPUS = ["def add(a, b):\n    return a + b\n\n\nfor item in items:\n    print(item, 'naïve ✅ 日本')\n"] * 4
CHATML = (
    "{% for m in messages %}"
    "{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


FIM = ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>")


def tiny_tokenizer(control: Sequence[str] = ()) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, show_progress=False, initial_alphabet=alphabet)
    tokenizer.train_from_iterator(CORPUS, trainer)
    control = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", *control)
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in control])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        chat_template=CHATML,
        clean_up_tokenization_spaces=False,
    )


def tiny_model(control: Sequence[str] = ()) -> LoadedModel:
    torch.manual_seed(0)
    tokenizer = tiny_tokenizer(control)
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=CONTEXT,
        initializer_range=0.5,
        tie_word_embeddings=False,
    )
    model = Qwen2ForCausalLM(config).eval().requires_grad_(False)
    end = frozenset({tokenizer.convert_tokens_to_ids("<|im_end|>")})
    return LoadedModel(model, tokenizer, "tiny", end, CONTEXT, torch.float32, torch.device("cpu"))


class SlowEngine(Engine):
    """Takes at least 20 ms a step, so that there is time to go away."""

    def step(self) -> bool:
        time.sleep(0.02)
        return super().step()


@dataclass(frozen=True)
class Running:
    """A server on a free port of this machine, in a thread."""

    url: str
    server: Server
    service: State

    @property
    def runner(self) -> Runner:
        return self.service.runner


@contextmanager
def running(
    engine: Engine,
    settings: Settings,
    change: Callable[[FastAPI], None] = lambda _: None,
    tracing: Tracing | None = None,
) -> Iterator[Running]:
    sock = bind("127.0.0.1", 0)
    server = make_server(engine, settings, tracing=tracing)
    change(server.config.app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
    thread.start()
    try:
        until(lambda: server.started)
        yield Running(url_of(sock).rstrip("/"), server, server.service)
    finally:
        server.should_exit = True
        thread.join()
        sock.close()


def until(true: Callable[[], bool], seconds: float = 60.0) -> None:
    """Waits for something that must become true."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)

"""All that only a GPU can tell, in one run of a few minutes.

It runs on a CPU as well, to be tried; figures from there say nothing about GPUs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, Qwen2Config

from lookup_bench.e2e import Row, compare, prompt_of, systems
from lookup_bench.layout import Case
from lookup_bench.replay import Recorded
from lookup_bench.tasks import Task
from lookup_spec.engine.budget import CostCurve, Target, Wish, share
from lookup_spec.model.cache import BLOCK, KVCache, in_blocks
from lookup_spec.model.forward import PackedModel, Rows
from lookup_spec.model.graphs import WIDEST, Graphs, capture_for
from lookup_spec.model.load import LoadedModel
from lookup_spec.model.seats import Seats
from lookup_spec.pipeline.engine import Engine
from lookup_spec.propose.proposer import LookupProposer
from lookup_spec.propose.store import SegmentStore
from lookup_spec.propose.walk import walk
from lookup_spec.text.retokenize import TokenizerRetokenizer

SHAPES: dict[str, Qwen2Config] = {
    "0.5B": Qwen2Config(
        hidden_size=896, intermediate_size=4864, num_hidden_layers=24, num_attention_heads=14, num_key_value_heads=2,
        vocab_size=151_936, max_position_embeddings=32_768, tie_word_embeddings=True,
    ),
    "7B": Qwen2Config(
        hidden_size=3584, intermediate_size=18_944, num_hidden_layers=28, num_attention_heads=28,
        num_key_value_heads=4, vocab_size=152_064, max_position_embeddings=32_768, tie_word_embeddings=False,
    ),
}  # fmt: skip
"""Models whose weights are random: passes take as long as with trained ones, and nothing has to be fetched."""

_CHUNK = 512  # prompt tokens a pass
_PLAIN = 64  # tokens decoded plainly for the rate


class Clock:
    """A time after which no further work begins.

    Args:
        seconds: from now on.
    """

    def __init__(self, seconds: float) -> None:
        self._end = time.perf_counter() + seconds
        self.left_out: list[str] = []

    def allows(self, what: str) -> bool:
        """Whether there is time left; if not, notes what is left out."""
        if time.perf_counter() < self._end:
            return True
        self.left_out.append(what)
        return False


@dataclass(frozen=True, slots=True)
class Flip:
    """How far speculation and wide passes choose as plain decoding does.

    Attributes:
        task: its name.
        tokens: of the plain answer.
        first_difference: where the answer with speculation parts from it; None if they are equal.
        flips: tokens of the plain answer that one pass over all of it would not choose.
        margins: at those, how much likelier (in logits) the pass found its own choice than the next one, rising.
    """

    task: str
    tokens: int
    first_difference: int | None
    flips: int
    margins: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Pass:
    """What a forward pass takes.

    Attributes:
        shape: of the model.
        graphs: replayed from a captured graph, not launched kernel by kernel.
        context: tokens in the cache.
        width: rows.
        milliseconds: median.
        over_one: that, divided by what one row takes.
    """

    shape: str
    graphs: bool
    context: int
    width: int
    milliseconds: float
    over_one: float


@dataclass(frozen=True, slots=True)
class Replayed:
    """Recorded edits, replayed with real passes.

    Attributes:
        shape: of the model.
        graphs: passes were replayed from captured graphs where they can be.
        edits: how many.
        tokens: of all answers.
        passes: that they took.
        seconds: of those, proposing included, prompts left out.
        plain_per_token: seconds of a pass over one row at such contexts.
        speedup: of all together.
    """

    shape: str
    graphs: bool
    edits: int
    tokens: int
    passes: int
    seconds: float
    plain_per_token: float
    speedup: float


@dataclass(frozen=True, slots=True)
class Captured:
    """What capturing graphs took.

    Attributes:
        shape: of the model.
        graphs: how many.
        seconds: for all of them.
    """

    shape: str
    graphs: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Report:
    """Everything.

    Attributes:
        device: its name.
        torch: the version.
        flips: of the real model.
        systems: of the real model, as the end-to-end benchmark has them.
        passes: of models of random weights.
        replayed: by models of random weights.
        captured: for models of random weights.
        left_out: what there was no time for.
    """

    device: str
    torch: str
    flips: tuple[Flip, ...]
    systems: tuple[Row, ...]
    passes: tuple[Pass, ...]
    replayed: tuple[Replayed, ...]
    captured: tuple[Captured, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is done.

    Attributes:
        widths: rows of a pass.
        contexts: tokens in the cache.
        repeats: timed passes of each kind.
        max_tokens: most tokens of an answer.
        draft: most drafted nodes a pass.
        seconds: after so long nothing new is begun.
    """

    widths: Sequence[int] = (1, 2, 4, 8, 16, 32, 64, 128)
    contexts: Sequence[int] = (512, 4096, 16_384)
    repeats: int = 10
    max_tokens: int = 256
    draft: int = 64
    seconds: float = 400.0


def measure(
    loaded: LoadedModel,
    others: str,
    shapes: dict[str, Qwen2Config],
    tasks: Sequence[Task],
    cases: Sequence[Case],
    sizes: Sizes,
    told: Callable[[str], None],
) -> Report:
    """Does as much as there is time for, the real model first.

    Args:
        loaded: the real model; its device and type are those of all.
        others: decoders to compare with, as for :func:`lookup_bench.e2e.systems`.
        shapes: of models of random weights.
        tasks: for the real model.
        cases: recorded edits, for the others, tokenized by the real one's tokenizer.
        sizes: how much is done.
        told: hears what runs.
    """
    clock = Clock(sizes.seconds)
    flips = tuple(_flips(loaded, tasks, sizes, clock, told))
    rows: list[Row] = []
    if clock.allows("comparison of decoders"):
        told("comparison of decoders")
        engine, decoders = systems(loaded.name, _name(loaded.dtype), others, device=str(loaded.device))
        for task in tasks:
            if clock.allows(f"comparison on {task.name}"):
                rows += compare(decoders, [task], engine, 1, sizes.max_tokens, told)
        del engine, decoders
    passes: list[Pass] = []
    replayed: list[Replayed] = []
    captured: list[Captured] = []
    for name, config in shapes.items():
        if not clock.allows(f"shape {name}"):
            continue
        told(f"shape {name}: random weights")
        model = random_model(config, loaded.dtype, loaded.device)
        graphs = _graphs(model, max(sizes.contexts))
        targets: list[Target] = [model] if graphs is None else [graphs, model]
        for target in targets:
            passes += _passes(name, target, sizes, clock, told)
            if clock.allows(f"edits replayed by shape {name}{_how(target)}"):
                told(f"shape {name}: replayed edits{_how(target)}")
                longest = config.max_position_embeddings
                replayed += _replayed(name, target, longest, cases, loaded.tokenizer.backend_tokenizer, sizes, clock)
        if graphs is not None:
            captured.append(Captured(name, graphs.captured, graphs.seconds))
        del model, graphs, targets, target  # the next one needs the memory
    device = torch.cuda.get_device_name(loaded.device) if loaded.device.type == "cuda" else str(loaded.device)
    return Report(
        device, torch.__version__, flips, tuple(rows), tuple(passes), tuple(replayed), tuple(captured),
        tuple(clock.left_out),
    )  # fmt: skip


def random_model(config: Qwen2Config, dtype: torch.dtype, device: torch.device) -> PackedModel:
    """A model of such a shape, its weights drawn where it is to run."""
    with device:
        model: Any = AutoModelForCausalLM.from_config(config, dtype=dtype)
    return PackedModel(model.eval().requires_grad_(False))


def _graphs(model: PackedModel, context: int) -> Graphs | None:
    """With a seat for one session, which all passes here are for; None where nothing can be captured."""
    capture = capture_for(model.device)
    if capture is None:
        return None
    one = model.new_cache()
    _feed(model, one, [0])
    graphs = Graphs(model, Seats(one.rows(0, 1), 1, in_blocks(context) + 2 * WIDEST), capture)
    graphs.warm_up()
    return graphs


def _how(target: Target) -> str:
    return ", with graphs" if isinstance(target, Graphs) else ""


def _flips(
    loaded: LoadedModel, tasks: Sequence[Task], sizes: Sizes, clock: Clock, told: Callable[[str], None]
) -> Iterator[Flip]:
    packed = PackedModel(loaded.model)
    engine = Engine(loaded, prefix_cache_bytes=0, max_draft_tokens=sizes.draft)
    for task in tasks:
        if not clock.allows(f"flips of {task.name}"):
            continue
        told(f"{task.name}: with speculation, without, and in one pass")
        prompt, most = prompt_of(engine, task), min(task.max_tokens, sizes.max_tokens)
        plain, fast = (
            engine.generate(prompt, max_tokens=most, speculation=speculation).token_ids for speculation in (False, True)
        )
        text = [*prompt.ids, *plain[:-1]]
        cache = packed.new_cache(len(text))
        keep = len(prompt.ids) - 1
        _feed(packed, cache, text[:keep])
        [logits] = packed.forward([Rows(cache, text[keep:], range(-1, len(text) - keep - 1), 0)])
        best = logits.topk(2)
        flipped = (best.indices[:, 0].cpu() != torch.tensor(plain)).nonzero().flatten()
        margins = (best.values[:, 0] - best.values[:, 1]).cpu()[flipped]
        first = next((n for n, (one, other) in enumerate(zip(plain, fast, strict=False)) if one != other), None)
        if first is None and len(plain) != len(fast):
            first = min(len(plain), len(fast))
        yield Flip(task.name, len(plain), first, len(flipped), tuple(sorted(margins.tolist())))


def _passes(name: str, model: Target, sizes: Sizes, clock: Clock, told: Callable[[str], None]) -> Iterator[Pass]:
    for context in sizes.contexts:
        if not clock.allows(f"passes of shape {name} at {context} tokens{_how(model)}"):
            continue
        told(f"shape {name}: passes at {context} tokens{_how(model)}")
        cache = _filled(model, context)
        one = 0.0
        for width in sizes.widths:
            rows = Rows(cache, [1] * width, range(-1, width - 1), 0)
            seconds = median(_timed(model, rows) for _ in range(sizes.repeats + 1))
            one = one or seconds
            yield Pass(name, isinstance(model, Graphs), context, width, seconds * 1e3, seconds / one)


def _filled(model: Target, tokens: int) -> KVCache:
    """A cache of so many tokens, or a few less: one block again and again."""
    block = model.new_cache(BLOCK)
    _feed(model, block, [1] * min(BLOCK, tokens))
    cache = model.new_cache(tokens + BLOCK)
    for _ in range(max(tokens // BLOCK, 1)):
        cache.append(block.rows(0, block.length))
    return cache


def _replayed(
    name: str, model: Target, longest: int, cases: Sequence[Case], tokenizer: Tokenizer, sizes: Sizes, clock: Clock
) -> Iterator[Replayed]:
    costs = CostCurve.measure(model, longest)
    store, retokenizer = SegmentStore(), TokenizerRetokenizer(tokenizer)
    tokens = passes = edits = 0
    seconds, plain = 0.0, []
    for case in cases:
        if not clock.allows(f"edit {case.edit.id} replayed by shape {name}{_how(model)}"):
            continue
        cache = model.new_cache(len(case.prompt.ids) + len(case.answer) + sizes.draft)
        _feed(model, cache, case.prompt.ids[:-1])
        plain += [_timed(model, Rows(cache, [case.prompt.ids[-1]], [-1], 0)) for _ in range(_PLAIN // len(cases) + 1)]
        proposer = LookupProposer(store, retokenizer=retokenizer)
        proposer.begin(case.predicted())
        done = 0
        started = time.perf_counter()
        while done < len(case.answer):
            tree = proposer.propose(sizes.draft)
            [count] = share(costs, [Wish(0, tree.probabilities[1:], cache.length)])
            tree = tree.head(count + 1)
            [logits] = model.forward([Rows(cache, tree.tokens, tree.parents, 0)])
            logits.max(dim=-1).indices.tolist()  # what a choice would wait for
            path = walk(tree, Recorded(case.answer, done)).path
            new = case.answer[done : done + len(path)]
            cache.commit(path[: len(new)])
            proposer.observe(new)
            done += len(new)
            passes += 1
        seconds += time.perf_counter() - started
        tokens += done
        edits += 1
    if edits:
        each = median(plain)
        yield Replayed(name, isinstance(model, Graphs), edits, tokens, passes, seconds, each, tokens * each / seconds)


def _feed(model: Target, cache: KVCache, ids: Sequence[int]) -> None:
    for start in range(0, len(ids), _CHUNK):
        part = ids[start : start + _CHUNK]
        model.forward([Rows(cache, part, range(-1, len(part) - 1), len(part))])
        cache.commit(range(len(part)))


def _timed(model: Target, rows: Rows) -> float:
    started = time.perf_counter()
    [logits] = model.forward([rows])
    logits.max().item()  # waits for the device
    return time.perf_counter() - started


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")

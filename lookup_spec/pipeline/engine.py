"""A loaded model that answers prompts: the library's front door."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from lookup_spec.engine.runner import Runner
from lookup_spec.engine.scheduler import Limits
from lookup_spec.engine.session import Piece, Session
from lookup_spec.engine.setup import Setup
from lookup_spec.grammar import Grammar
from lookup_spec.model.load import LoadedModel, load_model
from lookup_spec.params import Priority, Sampling, SamplingParams
from lookup_spec.pipeline.prompts import Prompts
from lookup_spec.pipeline.result import Result, collect
from lookup_spec.propose.calibration import Calibrations
from lookup_spec.propose.guided import GuidedProposer
from lookup_spec.propose.prompt import Prompt, Work
from lookup_spec.propose.proposer import LookupProposer
from lookup_spec.propose.protocol import NoProposer, Proposer
from lookup_spec.propose.store import SegmentStore
from lookup_spec.stats import Load, Stats
from lookup_spec.text.detokenize import Vocabulary
from lookup_spec.text.matcher import Grammars
from lookup_spec.text.output import TextOutput
from lookup_spec.text.retokenize import TokenizerRetokenizer
from lookup_spec.text.template import ChatTemplate

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast
    from typing_extensions import Unpack


class Options(TypedDict, total=False):
    """Keyword arguments of :class:`Engine`."""

    max_draft_tokens: int
    prefill_chunk: int | None
    max_sessions: int
    max_context_tokens: int | None
    kv_cache_bytes: int | None
    prefix_cache_bytes: int | None
    segment_store_bytes: int
    calibration: Path | None
    costs: Path | None
    strict: bool | None
    enforce_eager: bool


class Engine:
    """A model, its tokenizer and the sessions that run on it.

    Safe to use from several threads: requests that run at the same time share forward passes.

    Args:
        loaded: the model.
        max_draft_tokens: most drafted tokens per request and forward pass; fewer are checked where that is quicker.
        prefill_chunk: most prompt tokens per forward pass, all requests together. The others' streams, and a cancel,
            wait for as long as it takes; None takes what this machine computes in half a second, 64 to 2,048.
        max_sessions: requests that run at the same time; further ones wait.
        max_context_tokens: most tokens of prompt and answer together; None for as many as the model holds.
        kv_cache_bytes: most memory for keys and values; None takes a share of what is free once the model is loaded.
            A request longer than fits into it is refused.
        prefix_cache_bytes: as much of this may be spent on the keys and values of ended requests, for those that begin
            alike; 0 keeps none, None a quarter, but of a machine's own memory no more than 2 GiB.
        segment_store_bytes: most memory for indexed texts kept between requests; 0 keeps none.
        calibration: a directory that keeps, from run to run, how often guesses came true: counts only, no text. None
            forgets them with the engine.
        costs: a directory that keeps, from run to run, what passes cost on this machine, so that a start need not
            measure it; None measures it anew, which takes some seconds.
        strict: logits are the same to the last bit with and without speculation, alone and beside other requests, and
            whatever was computed before or had to be computed again; passes take a little longer. None: on a CPU
            whose kernels keep it.
        enforce_eager: on CUDA GPUs, passes over few rows are not replayed from captured graphs but launched kernel by
            kernel, as they are with ``strict`` and everywhere else.

    Raises:
        ModelError: memory is too short, or this machine cannot keep what ``strict`` promises.

    Attributes:
        tokenizer: the transformers tokenizer.
        model_name: what the model is called.
        context_length: most tokens of prompt and answer together: what the model holds, or less if so decided or if
            memory is short.
        room_tokens: tokens that there is memory for, those of all requests and of kept prefixes together.
        strict: whether logits are the same to the last bit.
        vocabulary: bytes of every token.
        template: the chat template.
        prompts: what makes prompts of texts and messages.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        *,
        max_draft_tokens: int = 64,
        prefill_chunk: int | None = None,
        max_sessions: int = 32,
        max_context_tokens: int | None = None,
        kv_cache_bytes: int | None = None,
        prefix_cache_bytes: int | None = None,
        segment_store_bytes: int = 256 << 20,
        calibration: Path | None = None,
        costs: Path | None = None,
        strict: bool | None = None,
        enforce_eager: bool = False,
    ) -> None:
        self.tokenizer: PreTrainedTokenizerFast = loaded.tokenizer
        self.model_name = loaded.name
        self.vocabulary = Vocabulary(loaded.tokenizer)
        self.template = ChatTemplate(loaded.tokenizer)
        self._end_ids = loaded.eos_ids
        setup = Setup.choose(
            loaded,
            strict=strict,
            enforce_eager=enforce_eager,
            max_sessions=max_sessions,
            max_context_tokens=max_context_tokens,
            kv_cache_bytes=kv_cache_bytes,
            prefix_cache_bytes=prefix_cache_bytes,
            costs=costs,
        )
        self._setup = setup
        self._model = setup.model
        self.strict = setup.model.strict
        self.context_length = setup.context_length
        self.room_tokens = setup.room.tokens
        self._runner = Runner(
            setup.target,
            Limits(
                max_sessions=max_sessions,
                prefill_chunk=prefill_chunk or setup.chunk,
                max_draft_tokens=max_draft_tokens,
                kv_tokens=setup.room.tokens,
                kept_tokens=setup.room.kept,
            ),
            costs=setup.costs,
        )
        encode = self.template.encode_data
        self._grammars = Grammars(self.vocabulary, self._model.vocab_size, encode, self._end_ids)
        self._segments = SegmentStore(max_bytes=segment_store_bytes)
        self._calibrations = Calibrations(calibration)
        self._retokenizer = TokenizerRetokenizer(loaded.tokenizer.backend_tokenizer)
        end = loaded.tokenizer.eos_token_id
        self.prompts = Prompts(
            self.template,
            self._retokenizer,
            vocab_size=self._model.vocab_size,
            end=(end,) if isinstance(end, int) else (),
        )
        self._lock = threading.Lock()

    def sampling(self, **options: Unpack[Sampling]) -> SamplingParams:
        """Checked settings from the forms that callers like.

        Raises:
            InvalidRequestError: a value is out of range.
        """
        stop = options.get("stop") or ()
        words = options.get("bad_words") or ()
        rest = {key: value for key, value in options.items() if key not in ("stop", "bad_words", "stop_token_ids")}
        return SamplingParams(
            **rest,  # type: ignore[arg-type]  # the names of Sampling are those of SamplingParams; a test holds them to it
            stop=(stop,) if isinstance(stop, str) else tuple(stop),
            bad_words=tuple(self._word(word) for word in words),
            stop_token_ids=frozenset(options.get("stop_token_ids") or ()),
        )

    def check(self, grammar: Grammar) -> None:
        """Makes sure that a grammar can be followed.

        Raises:
            InvalidRequestError: it has an error, or asks for what cannot be enforced.
        """
        self._grammars.matcher(grammar)

    def submit(
        self,
        prompt: Prompt,
        params: SamplingParams,
        *,
        speculation: bool = True,
        continuing: bool = False,
        tenant: str = "",
        priority: Priority = "interactive",
    ) -> Session:
        """Starts a request; it moves whenever :meth:`step` is called, by whomever.

        Args:
            prompt: ids and known segments.
            params: how to choose and when to stop.
            speculation: false for plain decoding.
            continuing: the answer goes on in the middle of the prompt's text, so a space at its start is kept;
                else it is decoded like a text of its own.
            tenant: whose request it is; nothing that is kept of one tenant's texts is used for another's.
            priority: all interactive requests come before those of a batch.

        Raises:
            InvalidRequestError: it can never be served.
        """
        matcher = None
        if params.grammar is not None:
            matcher = self._grammars.matcher(params.grammar, params.stop_token_ids)
        proposer, ended = self._proposer(tenant, prompt.work) if speculation else (NoProposer(), lambda: None)
        if speculation and matcher is not None and params.grammar is not None:
            proposer = GuidedProposer(proposer, matcher, self._grammars.habits(params.grammar))
        session = Session(
            prompt,
            params,
            proposer=proposer,
            output=TextOutput(self.vocabulary, params.stop, continuing=continuing),
            cache=self._model.new_cache(),
            end_ids=self._end_ids,
            context_length=self.context_length,
            vocab_size=self._model.vocab_size,
            ended=ended,
            matcher=matcher,
        )
        with self._lock:
            self._runner.add(session, tenant=tenant, priority=priority)
        return session

    def warm(self, prompt: str | Sequence[int] | Prompt, *, tenant: str = "") -> Stats:
        """Computes a prompt ahead, so that a request that begins like it answers sooner.

        Args:
            prompt: as for :meth:`stream`; what is computed and not kept for want of room is lost.
            tenant: whose request is expected.

        Raises:
            InvalidRequestError: it does not fit.
        """
        plain = SamplingParams(max_tokens=1)
        session = self.submit(self.prompts.of(prompt), plain, speculation=False, tenant=tenant, priority="batch")
        return collect(self.follow(session)).stats

    @property
    def load(self) -> Load:
        """What the engine is busy with."""
        with self._lock:
            return self._runner.load

    @property
    def best_parallel(self) -> int:
        """How many requests like the last ones to submit at the same time, for the most tokens per second."""
        with self._lock:
            return self._runner.best_parallel

    def close(self) -> None:
        """Writes what requests have taught about guesses and costs, where a directory keeps it; to be called at the
        end."""
        self._calibrations.save()
        self._setup.kept_costs.write(self._setup.costs)

    def step(self) -> bool:
        """Runs one forward pass for all running requests; false if there were none."""
        with self._lock:
            return bool(self._runner.step())

    def stream(
        self,
        prompt: str | Sequence[int] | Prompt,
        *,
        speculation: bool = True,
        prediction: str | Sequence[int] | None = None,
        **sampling: Unpack[Sampling],
    ) -> Iterator[Piece]:
        """The answer, piece by piece; the last piece carries ``finish_reason`` and ``stats``.

        Closing the iterator stops the work.

        Args:
            prompt: raw text that the answer continues, token ids, or ids with known segments.
            speculation: false for plain decoding; the answer is the same.
            prediction: a guess of the answer; it never changes the answer, only the speed.
            sampling: see :class:`lookup_spec.params.Sampling`; greedy unless a temperature is given.

        Raises:
            InvalidRequestError: the request can never be served.
        """
        session = self.submit(
            self.prompts.of(prompt, prediction),
            self.sampling(**sampling),
            speculation=speculation,
            continuing=isinstance(prompt, str),
        )
        return self.follow(session)

    def follow(self, session: Session) -> Iterator[Piece]:
        """The pieces of a submitted session, stepping as needed."""
        try:
            while True:
                with self._lock:
                    piece = session.take()
                    if piece is None:
                        self._runner.step()
                        continue
                yield piece
                if piece.finish_reason is not None:
                    return
        finally:
            with self._lock:
                session.cancel()
                self._runner.settle()

    def generate(
        self,
        prompt: str | Sequence[int] | Prompt,
        *,
        speculation: bool = True,
        prediction: str | Sequence[int] | None = None,
        **sampling: Unpack[Sampling],
    ) -> Result:
        """The whole answer; arguments as for :meth:`stream`."""
        return collect(self.stream(prompt, speculation=speculation, prediction=prediction, **sampling))

    def _proposer(self, tenant: str, work: Work) -> tuple[Proposer, Callable[[], None]]:
        """A proposer for one request, and what to call when the request ends."""
        calibration = self._calibrations.of(tenant, work)
        hazards = calibration.start()
        proposer = LookupProposer(self._segments, tenant=tenant, hazards=hazards, retokenizer=self._retokenizer)
        return proposer, lambda: calibration.learn(hazards)

    def _word(self, word: str | Sequence[int]) -> tuple[int, ...]:
        return self.template.encode_data(word) if isinstance(word, str) else tuple(word)


def load_engine(
    model: str | None = None, *, dtype: str = "auto", device: str = "auto", **options: Unpack[Options]
) -> Engine:
    """Loads a model and makes an engine of it.

    Args:
        model: a Hugging Face id, a local directory, a ``.gguf`` file or the name of an embedded model; None takes
            the embedded default.
        dtype: ``"auto"``, ``"float32"``, ``"bfloat16"`` or ``"float16"``; auto is bfloat16 where the hardware
            computes in it, else float32.
        device: ``"auto"``, or a torch device; auto is CUDA, then MPS, then the CPU.
        options: see :class:`Engine`.

    Raises:
        ModelError: the model cannot be found or run; the message says why in one sentence.
    """
    return Engine(load_model(model, dtype=dtype, device=device), **options)

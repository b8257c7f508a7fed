"""An engine that answers every prompt with the same text, through the real sessions, proposers and text lane."""

from __future__ import annotations

from typing import Any

from fakes.scripted import ScriptedModel, recite
from lookup_spec.engine.runner import Runner
from lookup_spec.engine.scheduler import Limits
from lookup_spec.engine.session import Session
from lookup_spec.model.load import LoadedModel
from lookup_spec.params import SamplingParams
from lookup_spec.pipeline.engine import Engine
from lookup_spec.propose.prompt import Prompt


class Scribe(Engine):
    """Writes down what it is told.

    Args:
        loaded: whose tokenizer and template are used; its network is not.
        answer: the text of every answer.
        ended: an end token follows the text; without, the model breaks down behind it.
        max_sessions: requests that run at the same time.
    """

    def __init__(self, loaded: LoadedModel, answer: str, *, ended: bool = True, max_sessions: int = 32) -> None:
        super().__init__(loaded)
        self._scripts: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._script = self.template.encode_data(answer) + (tuple(loaded.eos_ids) if ended else ())
        model: Any = ScriptedModel(recite(self._scripts), len(loaded.tokenizer))
        self._model = model
        self._runner = Runner(model, Limits(max_draft_tokens=16, max_sessions=max_sessions))

    def say(self, answer: str) -> None:
        """Changes the text of the answers that follow."""
        self._script = (*self.template.encode_data(answer), self._script[-1])

    @property
    def asked(self) -> list[tuple[int, ...]]:
        """Token ids of the prompts it was given."""
        return list(self._scripts)

    def submit(self, prompt: Prompt, params: SamplingParams, **options: Any) -> Session:
        self._scripts[prompt.ids] = self._script
        return super().submit(prompt, params, **options)

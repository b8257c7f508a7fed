"""Real edits of a real file by a real model."""

from __future__ import annotations

import keyword
from pathlib import Path

import pytest

from lookup_spec import load_engine
from lookup_spec.model.embedded import EMBEDDED, LIGHT, is_installed
from lookup_spec.params import SamplingParams
from lookup_spec.pipeline.edit import EditDone, edit
from lookup_spec.pipeline.edit_plan import EditRequest
from lookup_spec.pipeline.engine import Engine
from lookup_spec.text.edit_task import Instruction
from lookup_spec.text.lines import SourceText

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not is_installed(EMBEDDED[LIGHT]), reason="the light embedded model is not installed"),
]


@pytest.fixture(scope="module")
def engine() -> Engine:
    return load_engine(LIGHT, dtype="float32")


def _edited(engine: Engine, instruction: str, params: SamplingParams, *, speculation: bool) -> EditDone:
    source = SourceText.from_bytes(Path(keyword.__file__).read_bytes())
    *_, done = edit(engine, EditRequest(source, Instruction(instruction), "keyword.py", params, speculation))
    assert isinstance(done, EditDone)
    return done


@pytest.mark.parametrize(
    "params",
    [SamplingParams(), SamplingParams(temperature=0.4, top_p=0.9, seed=11, max_tokens=120)],
    ids=["greedy", "sampled"],
)
def test_an_edit_is_the_same_with_and_without_speculation(engine: Engine, params: SamplingParams) -> None:
    """Token counts, text and ending agree, and speculation saves most of the passes."""
    fast = _edited(engine, "Rename the list kwlist to keyword_list.", params, speculation=True)
    plain = _edited(engine, "Rename the list kwlist to keyword_list.", params, speculation=False)
    assert fast.text == plain.text
    assert (fast.finish_reason, fast.stats.completion_tokens) == (plain.finish_reason, plain.stats.completion_tokens)
    assert fast.stats.forward_passes < plain.stats.forward_passes / 4


def test_a_rename_is_carried_out(engine: Engine) -> None:
    """The answer is the file with the name changed, and comes in a few passes."""
    result = _edited(engine, "Rename the list kwlist to keyword_list.", SamplingParams(), speculation=True)
    before = Path(keyword.__file__).read_text()
    assert result.finish_reason == "stop"
    assert result.text.count("keyword_list") >= 2
    assert len(result.text.splitlines()) == len(before.splitlines())
    assert result.stats.completion_tokens > 20 * result.stats.forward_passes

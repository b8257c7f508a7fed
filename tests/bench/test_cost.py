from __future__ import annotations

import json
from pathlib import Path

import pytest
from lookup_bench.cli import app
from lookup_bench.cost import Task, measure
from lookup_bench.layout import cases
from lookup_bench.records import Edit, RecordError
from lookup_bench.replay import LONG_COPY, replay
from lookup_bench.strain import groups, pathological
from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer
from typer.testing import CliRunner

from lookup_spec.propose.prompt import Prompt, Span
from lookup_spec.propose.proposer import LookupProposer
from lookup_spec.text.retokenize import TokenizerRetokenizer

FILES = [
    "".join(f"def function_{number}_{line}(a, b):\n    return a + {line}\n\n" for line in range(30))
    for number in range(8)
]
EDITS = [
    Edit(f"e{number}", "Subtract", text, text.replace("+ 7", "- 7"), f"f{number}.py")
    for number, text in enumerate(FILES)
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A byte-level tokenizer of some four hundred tokens."""
    made = Tokenizer(BPE())
    made.pre_tokenizer = ByteLevel(add_prefix_space=False)
    trainer = BpeTrainer(
        vocab_size=400, initial_alphabet=ByteLevel.alphabet(), special_tokens=["<|im_start|>", "<|im_end|>"],
        show_progress=False,
    )  # fmt: skip
    made.train_from_iterator(FILES, trainer)
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    made.save(str(path))
    return path


@pytest.fixture(scope="module")
def tokenizer(path: Path) -> Tokenizer:
    return Tokenizer.from_file(str(path))


def test_every_group_has_its_figures(path: Path, tmp_path: Path) -> None:
    """Each context and each hard text has a line in the table and an object in the JSON file."""
    edits, out = tmp_path / "edits.jsonl", tmp_path / "out.json"
    edits.write_text(
        "".join(
            json.dumps({"instruction": edit.instruction, "before": edit.before, "after": edit.after, "path": edit.path})
            + "\n"
            for edit in EDITS
        )
    )
    arguments = [
        "propose", "--edits", edits, "--model", path, "--context", "1500,2600", "--sample", 1, "--rounds", 1,
        "--size", 1000, "--json", out,
    ]  # fmt: skip
    result = CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    rows = json.loads(out.read_text())
    assert [row["name"] for row in rows] == [
        *["edit amid documents"] * 2, *["edit amid a long file"] * 2, "equal tokens", "newlines", "period of two",
        "random tokens", "no token twice", "base64", "minified code",
    ]  # fmt: skip
    for row in rows:
        assert row["name"] in result.output
        assert row["copy_steps"] + row["other_steps"] > 0
        assert (row["copy_us"] is None) == (row["copy_steps"] == 0)
        assert row["again_segments"] == 0
        assert 0 < row["bytes_per_token"] < 2000
    assert rows[1]["context"] > 1.4 * rows[0]["context"]
    result = CliRunner().invoke(app, ["propose", "--edits", str(edits), "--context", "0"])
    assert (result.exit_code, "is no list of token counts" in result.output) == (2, True)


def test_edits_stand_amid_other_files(tokenizer: Tokenizer) -> None:
    """The edited file is in its context once, whole; the text before it in a long file is written already."""
    for name, tasks in groups(EDITS, [3000], 8, 1000, tokenizer)[:2]:
        for task, (case,) in zip(tasks, (cases([edit], tokenizer) for edit in EDITS), strict=True):
            (old,) = case.prompt.spans
            file, ids = case.prompt.ids[old.start : old.end], task.prompt.ids
            assert [ids[n : n + len(file)] for n in range(len(ids))].count(file) == 1
            base = next(span for span in task.prompt.spans if span.kind == "base")
            (prediction,) = (item.ids for item in task.prompt.references)
            assert len(ids) == 3000
            assert task.indexed == 3000 - len(file) + len(case.prediction)
            assert task.answer == case.answer
            if name == "edit amid documents":
                assert (ids[base.start : base.end], prediction, task.written) == (file, case.prediction, ())
            else:
                assert ids[base.start :][: len(task.written)] == prediction[: len(task.written)] == task.written
                assert prediction[len(task.written) :][: len(case.prediction)] == case.prediction


def test_no_short_answer_is_refused(tokenizer: Tokenizer) -> None:
    """Edits whose answers are all too long are refused in one sentence."""
    with pytest.raises(RecordError, match="None of 1 edits"):
        groups([Edit("e", "x", "", "a b c d e\n" * 3000)], [3000], 4, 1000, tokenizer)


def test_hard_texts_are_what_they_are_called(tokenizer: Tokenizer) -> None:
    """Each hard text has its size and its property, and its answer copies its second half."""
    texts = dict(pathological(EDITS, 1000, tokenizer))
    ids = {name: task.prompt.ids[:-1] for name, task in texts.items()}
    assert {name: len(text) for name, text in ids.items()} == {
        name: 1000 for name in texts if name != "minified code"
    } | {"minified code": len(ids["minified code"])}
    assert len(set(ids["equal tokens"])) == 1
    assert ids["period of two"][::2] == (0,) * 500
    assert len(set(ids["no token twice"])) == 1000
    for name, task in texts.items():
        half = len(ids[name]) // 2
        assert task.written == ids[name][:half]
        assert task.answer[:100] == ids[name][half : half + 100]


@pytest.mark.parametrize("size", [4_000, pytest.param(64_000, marks=pytest.mark.slow)])
def test_hard_texts_finish(size: int, tokenizer: Tokenizer) -> None:
    """Thousands of equal tokens, newlines, base64, code on one line and the like are answered to their ends, in few
    passes."""
    retokenizer = TokenizerRetokenizer(tokenizer)
    for name, task in pathological(EDITS * 20, size, tokenizer):
        assert len(task.prompt.ids) == size + 1, name
        count = replay(LookupProposer(retokenizer=retokenizer), task.prompt, task.answer, 64, task.written)
        assert count.tokens == len(task.answer)
        assert count.steps < count.tokens / 8, name


def test_a_copy_is_long_once_it_went_well_for_long() -> None:
    """Steps count as in a copy from the 32nd token on that followed the drafts, and no longer after a departure."""
    base = tuple(range(100, 400))
    prompt = Prompt((*base, 1), (Span(0, len(base), "base"),))
    answer = (*base[:150], 7, *base[151:])
    count = replay(LookupProposer(), prompt, answer, 16)
    done, followed = 0, 0
    proposer = LookupProposer()
    proposer.begin(prompt)
    for copying in count.copying:
        assert copying == (followed >= LONG_COPY)
        tree = proposer.propose(16)
        children = {(parent, token): node for node, (parent, token) in
                    enumerate(zip(tree.parents, tree.tokens, strict=True))}  # fmt: skip
        node, start = 0, done
        while (node, answer[done]) in children:
            node, done = children[node, answer[done]], done + 1
            if done == len(answer):
                break
        done = min(done + 1, len(answer))
        proposer.observe(answer[start:done])
        followed = followed + done - start if node and node not in tree.parents else 0
    assert True in count.copying
    assert not count.copying[0]


def test_what_was_written_before_is_not_counted(tokenizer: Tokenizer) -> None:
    """The clock and the counts begin after the written part, and the copy goes on from there."""
    base = tuple(range(2000))
    task = Task(Prompt((*base, 1), (Span(0, len(base), "base"),)), base[1000:], base[:1000])
    count = replay(LookupProposer(), task.prompt, task.answer, 49, task.written)
    assert (count.tokens, count.steps) == (1000, 20)
    cost = measure("x", [task], TokenizerRetokenizer(tokenizer), 49, 1)
    assert (cost.copy_steps, cost.other_steps, cost.context, task.indexed) == (19, 1, 2001, 2001)

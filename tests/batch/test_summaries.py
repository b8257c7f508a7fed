"""Summaries: parts that fit, joined until they are one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lookup_server.openai.batch_lines import BatchApi, Defaults

from lookup_spec.batch.order import alike_together
from lookup_spec.batch.parts import Part
from lookup_spec.batch.pool import Pool
from lookup_spec.batch.request import BadLine, Request
from lookup_spec.batch.results import Outcome
from lookup_spec.batch.summaries import Summarizing, parts_of
from lookup_spec.batch.summary_template import SummaryTemplate, default_template
from lookup_spec.batch.texts import texts
from lookup_spec.errors import BatchError
from lookup_spec.pipeline.engine import Engine
from tests.server.tiny_service import tiny_model

SHORT = SummaryTemplate("{% if joining %}J{% else %}S{% endif %} {{ name }} {{ part }}/{{ parts }}:\n{{ text }}")


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(tiny_model())


def summarize(
    engine: Engine, text: str, part_tokens: int, parallel: int = 4, kept: Sequence[Part] = ()
) -> tuple[Outcome, list[str], list[Part]]:
    """The summary, the prompts that led to it, and what was to be kept on the way."""
    chats, asked = BatchApi(engine, ["tiny"], Defaults(temperature=0.7)), list[str]()

    class Watched:
        def prepare(self, request: Request) -> Any:
            asked.append(request.body["messages"][0]["content"])
            return chats.prepare(request)

        def failure(self, error: Exception) -> Any:
            return chats.failure(error)

    api = Summarizing(SHORT, 10, part_tokens).api(engine, Watched())
    known = {part.digest: part.said for part in kept}
    request = Request(1, "doc", "summary", {"text": text, "name": "doc"}, kept=known)
    *parts, outcome = [one for some in Pool(engine, api, parallel).run([request]) for one in some]
    assert isinstance(outcome, Outcome)
    return outcome, asked, [part for part in parts if isinstance(part, Part)]


def test_a_short_text_is_one_question(engine: Engine) -> None:
    outcome, asked, parts = summarize(engine, "some words", 500)
    assert parts == []
    assert asked == ["S doc 1/1:\nsome words"]
    assert outcome.status == 200
    assert outcome.body["usage"]["completion_tokens"] == 10


def test_a_long_text_is_joined_in_steps(engine: Engine) -> None:
    """All of it is asked about, in order; what joins holds the answers; tokens are those of all questions."""
    text = "".join(f"# Section {n}\n\nsome words about {n}\n\n" for n in range(12))
    outcome, asked, _ = summarize(engine, text, 90)
    parts = [one.split("\n", 1)[1] for one in asked if one.startswith("S")]
    assert "".join(parts) == text
    assert all(part.startswith("# Section") for part in parts)
    joins = [one for one in asked if one.startswith("J")]
    assert len(joins) > 2, "several steps"
    assert joins[-1].startswith("J doc 1/1:")
    assert outcome.body["usage"]["completion_tokens"] > 10
    assert outcome.body["usage"]["completion_tokens"] <= 10 * len(asked)


def test_a_summary_does_not_depend_on_what_runs_beside_it(engine: Engine) -> None:
    text = "some words of a text\n" * 40
    first, second = (summarize(engine, text, 120, parallel)[0].body["choices"] for parallel in (1, 8))
    assert first == second


def test_parts_that_were_kept_are_not_asked_again(engine: Engine) -> None:
    """However many there are: the rest is asked, and the summary and what it took are the same."""
    text = "".join(f"# Section {n}\n\nsome words about {n}\n\n" for n in range(12))
    expected, all_asked, parts = summarize(engine, text, 90, parallel=1)
    assert len(parts) == len(all_asked) - 1
    for count in (1, len(parts) // 2, len(parts)):
        outcome, asked, others = summarize(engine, text, 90, parallel=3, kept=parts[:count])
        assert sorted(asked) == sorted(all_asked[count:])
        assert len(others) == len(parts) - count
        assert outcome.body["choices"] == expected.body["choices"]
        assert outcome.body["usage"]["total_tokens"] == expected.body["usage"]["total_tokens"]


def test_texts_and_settings_that_make_no_summary_are_refused(engine: Engine) -> None:
    outcome, asked, _ = summarize(engine, " \n", 500)
    assert (outcome.status, asked) == (400, [])
    chats = BatchApi(engine, ["tiny"], Defaults())
    with pytest.raises(BatchError, match="lower --max-tokens"):
        Summarizing(SHORT, 400, 500).api(engine, chats)
    for source, word in (("{{ text", "cannot be read"), ("{{ txt }}", "cannot be filled"), ("{{ name }}", "leaves")):
        with pytest.raises(BatchError, match=word):
            SummaryTemplate(source)


def test_the_template_that_comes_along_speaks_of_parts_only_where_there_are() -> None:
    template = SummaryTemplate(default_template())
    assert "part 2 of 3" in template.question("words", "name", 2, 3)
    assert "part" not in template.question("words", "name")
    assert "parts of one text" in template.question("words", "name", 1, 2, joining=True)


@given(st.text(st.sampled_from("ab \n#."), max_size=80), st.integers(1, 50))
def test_parts_fit_and_are_the_text(text: str, most: int) -> None:
    """Whatever its letters count."""

    def tokens(part: str) -> int:
        return sum(3 if letter == "b" else 1 for letter in part)

    parts = parts_of(text, "", tokens, most)
    assert "".join(parts) == text
    assert all(tokens(part) <= most or len(part) == 1 for part in parts)


def write(folder: Path, name: str, data: bytes) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def listed(spec: Path, column: str | None = None, id_column: str | None = None) -> list[tuple[str, str]]:
    source = texts(str(spec), column, id_column)
    found = list(source.requests())
    assert len(found) == source.count()
    return [
        (one.custom_id, one.problem or one.body["text"]) if isinstance(one, Request) else ("", one.message)
        for one in found
    ]


def test_files_are_texts_by_their_path(tmp_path: Path) -> None:
    """Of a folder or a pattern, sorted; hidden ones are left out, others that are no text are not."""
    for name, data in (("b.txt", b"two"), ("a/x.md", b"\xef\xbb\xbfone"), (".git/x", b"no"), ("c.bin", b"\xff\xfe")):
        write(tmp_path, name, data)
    names = listed(tmp_path)
    assert names[:2] == [("a/x.md", "one"), ("b.txt", "two")]
    assert [name for name, _ in names] == ["a/x.md", "b.txt", "c.bin"]
    assert "no UTF-8 text" in names[2][1]
    assert [text for _, text in listed(tmp_path / "**" / "*.md")] == ["one"]
    assert listed(tmp_path / "b.txt") == [("b.txt", "two")]
    assert listed(tmp_path / "none*") == []


def test_rows_are_texts_by_their_name_or_number(tmp_path: Path) -> None:
    """In all three kinds of tables."""
    parquet = pytest.importorskip("pyarrow.parquet")
    arrow = pytest.importorskip("pyarrow")
    write(tmp_path, "t.jsonl", b'{"id": 1, "text": "one"}\n{"id": "b", "text": "two\\nlines"}\n')
    write(tmp_path, "t.csv", b'id,text\r\n1,one\r\nb,"two\nlines"\r\n')
    parquet.write_table(arrow.table({"id": ["1", "b"], "text": ["one", "two\nlines"]}), tmp_path / "t.parquet")
    for suffix in ("jsonl", "csv", "parquet"):
        path = tmp_path / f"t.{suffix}"
        assert listed(path, "text", "id") == [("1", "one"), ("b", "two\nlines")]
        assert listed(path, "text") == [("row-1", "one"), ("row-2", "two\nlines")]
        with pytest.raises(BatchError, match="--column"):
            texts(str(path), None, None)
    write(tmp_path, "bad.jsonl", b'{"text": 7}\nbroken\n{"id": "c", "text": "three"}\n')
    assert [name for name, _ in listed(tmp_path / "bad.jsonl", "text", "id")] == ["", "", "c"]
    with pytest.raises(BatchError, match="no column 'words'"):
        listed(tmp_path / "t.csv", "words")
    with pytest.raises(BatchError, match="go with a table"):
        texts(str(tmp_path), "text", None)


def test_requests_that_begin_alike_follow_each_other() -> None:
    """A few hundred at a time, and none is lost."""
    requests: list[Request | BadLine] = [
        Request(number, str(number), "/", {"messages": [{"content": "abc"[number % 3]}]}) for number in range(300)
    ]
    ordered = list(alike_together(requests))
    assert sorted(one.line for one in ordered) == list(range(300))
    beginnings = [one.body["messages"][0]["content"] for one in ordered[:256] if isinstance(one, Request)]
    assert beginnings == sorted(beginnings)

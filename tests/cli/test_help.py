"""What the commands say about themselves reaches the reader."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from lookup_spec.cli import app


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("batch run", ["[default: the model's own name]", "[default: 1, as OpenAI's; for summaries 0]"]),
        ("serve", ["[default: auto]", "[default: no key]"]),
        ("generate", ["[default: until the context is full]"]),
    ],
)
def test_help_shows_what_stands_in_brackets(command: str, words: list[str]) -> None:
    told = CliRunner().invoke(app, [*command.split(), "--help"], env={"COLUMNS": "400", "TERMINAL_WIDTH": "400"}).output
    assert [word for word in words if word not in told] == []

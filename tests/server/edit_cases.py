"""Edits with scripted answers, recorded from the real service. Editors test against the recordings.

``python -m tests.server.edit_cases`` writes them to ``editors/fixtures``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fakes.scribe import Scribe
from lookup_server.settings import Settings

from tests.server.edit_client import apply, edit, sha256
from tests.server.tiny_service import running, tiny_model

FOLDER = Path(__file__).parents[2] / "editors" / "fixtures"


@dataclass(frozen=True)
class Case:
    """One edit.

    Attributes:
        base: the document.
        answer: what the model says.
        final: the document afterwards.
        fields: of the request, besides its document and instruction.
    """

    base: str
    answer: str
    final: str
    fields: dict[str, Any] = field(default_factory=dict)

    def request(self, name: str) -> dict[str, Any]:
        """The body to send."""
        document = {"uri": f"file:///project/{name}.py", "language_id": "python", "version": 1, "text": self.base}
        # One token a step: so nothing in the events depends on what is proposed.
        options = {"speculation": False, **self.fields.get("options", {})}
        task = {} if {"update", "edit_history"} & set(self.fields) else {"instruction": "Edit it."}
        return {"document": document, **task, **self.fields, "options": options, "stream": True}


ADD = "def add(a, b):\n    return a - b\n\n\nprint(add(1, 2))\n"
ROWS = "".join(f"row_{n} = compute_row({n})\n" for n in range(1, 9))
SEVERAL = ROWS.replace("compute_row(2)", "None").replace("row_5 = compute_row(5)\n", "") + "total = sum_of_rows()\n"
MIXED = "first = 1\r\nsecond = 2\n\tthird = 3\rfourth = 4\r\nfifth = 5"


def lines(first: int, last: int) -> dict[str, Any]:
    return {"start": {"line": first, "character": 0}, "end": {"line": last, "character": 0}}


CASES = {
    "one-line": Case(ADD, ADD.replace("-", "+") + "```", ADD.replace("-", "+")),
    "no-change": Case(ADD, ADD + "```", ADD),
    "several-hunks": Case(ROWS, f"{SEVERAL}```", SEVERAL),
    "insert-at-start": Case(ADD, f"import math\n\n{ADD}```", f"import math\n\n{ADD}"),
    "delete-to-end": Case(ROWS, "row_1 = compute_row(1)\nrow_2 = compute_row(2)\n```", ROWS[: 2 * 23]),
    "crlf": Case(ADD.replace("\n", "\r\n"), ADD.replace("-", "+") + "```", ADD.replace("-", "+").replace("\n", "\r\n")),
    "mixed-line-ends": Case(
        MIXED,
        "first = 1\nsecond = 20\nadded = 2.5\n\tthird = 3\nfourth = 4\nfifth = 5\nsixth = 6\n```",
        "first = 1\r\nsecond = 20\nadded = 2.5\n\tthird = 3\rfourth = 4\r\nfifth = 5\r\nsixth = 6",
    ),
    "byte-order-mark": Case(f"\ufeff{ADD}", f"# New.\n{ADD}```", f"\ufeff# New.\n{ADD}"),
    "tabs": Case("all:\n\tmake one\n\tmake two\n", "all:\n\tmake one\n\tmake 2\n```", "all:\n\tmake one\n\tmake 2\n"),
    "astral": Case(
        'face = "😀"\nfamily = "👩‍👧"\nkanji = "漢"\n',
        'face = "😀😀"\nfamily = "👩‍👧"\nkanji = "漢字"\n```',
        'face = "😀😀"\nfamily = "👩‍👧"\nkanji = "漢字"\n',
    ),
    "no-final-newline": Case(ADD.rstrip("\n"), f"{ADD}print(add(3, 4))\n```", f"{ADD}print(add(3, 4))"),
    "empty-document": Case("", "print('hello')\n```", "print('hello')\n"),
    "range": Case(
        ROWS,
        "row_3 = None\nrow_4 = compute_row(4)\n```",
        ROWS.replace("compute_row(3)", "None"),
        {"range": lines(2, 4)},
    ),
    "apply-update": Case(
        ADD,
        ADD.replace("-", "+") + "```",
        ADD.replace("-", "+"),
        {"update": "def add(a, b):\n    return a + b\n\n# ... existing code ...\n"},
    ),
    "next-edit": Case(
        ADD,
        ADD.replace("add(1, 2)", "add(1, 2, 3)") + "```",
        ADD.replace("add(1, 2)", "add(1, 2, 3)"),
        {"edit_history": ["@@ -1 +1 @@\n-def add(a):\n+def add(a, b):\n"], "cursor": {"line": 4, "character": 10}},
    ),
    "growing-hunks": Case(
        ADD,
        ADD.replace("    return a - b\n", "    total = a\n    total += b\n    return total\n") + "```",
        ADD.replace("    return a - b\n", "    total = a\n    total += b\n    return total\n"),
        {"options": {"granularity": "line"}},
    ),
    "truncated": Case(
        ROWS,
        ROWS.replace("compute_row(1)", "one").replace("compute_row(7)", "seven") + "```",
        ROWS.replace("compute_row(1)", "one"),
        {"options": {"max_tokens": 90}},
    ),
    "trace": Case(ADD, ADD.replace("-", "+") + "```", ADD.replace("-", "+"), {"options": {"trace": True}}),
    "no-document-in-answer": Case(ADD, "I am sorry, I cannot do that.", ADD),
    "code-left-out": Case(
        ROWS,
        "row_1 = None\nrow_2 = compute_row(2)\n# ... existing code ...\nrow_8 = compute_row(8)\n```",
        ROWS,
    ),
}


def untimed(event: dict[str, Any]) -> dict[str, Any]:
    """An event without its times and the edit's name."""
    times = {key: 0 for key in event if key in ("created", "seconds") or key.endswith("_seconds")}
    stats = {"stats": untimed(event["stats"])} if "stats" in event else {}
    return {**event, **times, **stats, **({"edit_id": "edit-1"} if "edit_id" in event else {})}


def record(url: str, engine: Scribe, name: str) -> dict[str, Any]:
    """What the service says to a case, without what is new each time."""
    case = CASES[name]
    engine.say(case.answer)
    request = case.request(name)
    events = [untimed(event) for event in edit(url, request)]
    end = events[-1]
    kept = end["type"] == "done" or end["safe_to_keep"]
    final = apply(case.base, events) if kept else case.base
    assert final == case.final, (name, final)
    assert end["type"] == "error" or end["result_sha256"] == sha256(final)
    return {"request": request, "base": case.base, "events": events, "final": final}


def dumped(recording: dict[str, Any]) -> str:
    """A recording as its file has it: one event a line."""
    head = {key: recording[key] for key in ("request", "base", "final")}
    parts = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    events = ",\n".join(f"    {json.dumps(event)}" for event in recording["events"])
    return "{\n" + ",\n".join([*parts, f'  "events": [\n{events}\n  ]']) + "\n}\n"


def main() -> None:
    engine = Scribe(tiny_model(), "")
    FOLDER.mkdir(parents=True, exist_ok=True)
    with running(engine, Settings()) as service:
        for name in CASES:
            (FOLDER / f"{name}.json").write_text(dumped(record(service.url, engine, name)), encoding="utf-8")


if __name__ == "__main__":
    main()

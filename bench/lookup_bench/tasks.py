"""Work for the end-to-end benchmark: real files that any Python has, and what to do with them."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path
from pydoc_data.topics import topics

from lookup_bench.records import Edit
from lookup_spec.errors import LookupSpecError


class TaskError(LookupSpecError):
    """A task file that cannot be used."""


@dataclass(frozen=True, slots=True)
class Task:
    """One request.

    Attributes:
        name: in the table.
        text: the file; empty for a plain question.
        instruction: what to do with it, or the question.
        path: the file's name.
        max_tokens: most tokens of the answer.
    """

    name: str
    text: str
    instruction: str
    path: str = ""
    max_tokens: int = 2048


# Modules of the standard library with 60 to 120 lines: anyone can rebuild these tasks.
_EDITS = (
    ("rename, list", "keyword", "Rename the list kwlist to keyword_list."),
    ("rename, function", "nturl2path", "Rename the function url2pathname to url_to_path."),
    ("rename, parameter", "bisect", "Rename the parameter x to item in the function insort_right."),
    ("type hints", "bisect", "Add type hints to all functions."),
)
_BUG = ("hi = mid\n", "hi = mid - 1\n")
_BUG_REPORT = "Fix a bug in bisect_right: hi must become mid, not mid - 1."
_LONG = 8000  # characters, about 2,000 tokens
_SUMMARIZED = "Summarize what this text says about classes and functions, in one paragraph."


def default_tasks() -> list[Task]:
    """Edits of the standard library, a summary of a part of Python's manual, and one question."""
    edits = [Task(name, _source(module), instruction, f"{module}.py") for name, module, instruction in _EDITS]
    broken = Task("bug fix", _source("bisect").replace(*_BUG, 1), _BUG_REPORT, "bisect.py")
    # The beginning, up to the end of a function.
    bare = _source("colorsys").split("\ndef rgb_to_hsv")[0].rstrip() + "\n"
    described = Task("docstrings", bare, "Add a docstring to each function.", "colorsys.py")
    summary = Task("summary", "", f"{_SUMMARIZED}\n\n{topics['compound'][-_LONG:]}", max_tokens=300)
    return [*edits, broken, described, summary, _free()]


def made_edits() -> list[Edit]:
    """Edits whose results are known without a model: a name exchanged throughout, and the bug taken out."""
    names = (("keyword", "kwlist", "keyword_list"), ("nturl2path", "url2pathname", "url_to_path"))
    renames = [
        Edit(module, f"Rename {old} to {new}.", _source(module), _source(module).replace(old, new), f"{module}.py")
        for module, old, new in names
    ]
    right = _source("bisect")
    return [*renames, Edit("bisect", _BUG_REPORT, right.replace(*_BUG, 1), right, "bisect.py")]


def short_tasks(lines: int = 24) -> list[Task]:
    """Edits of the first lines of those files, and two questions, for many requests at a time."""
    edits = [
        Task(name, "".join(_source(module).splitlines(keepends=True)[:lines]), instruction, f"{module}.py")
        for name, module, instruction in _EDITS
    ]
    question = "Explain in a few sentences what a hash table is and when it is slow."
    return [*edits, _free(), Task("explanation", "", question, max_tokens=300)]


def _free() -> Task:
    question = "Write a Python class for a priority queue with push, pop and peek, with docstrings and a short example."
    return Task("free text", "", question, max_tokens=300)


def read_tasks(path: Path) -> list[Task]:
    """Tasks from JSON Lines: ``name``, ``instruction``, and ``file`` (a path), ``module`` or ``text``.

    Raises:
        TaskError: the file cannot be read, or a line is no task.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"Cannot read tasks from {path}: {error}.") from error
    tasks = [_task(line, f"{path}, line {number}") for number, line in enumerate(lines, 1) if line.strip()]
    if not tasks:
        raise TaskError(f"{path} holds no tasks; give one JSON object a line.")
    return tasks


def _task(line: str, where: str) -> Task:
    try:
        record = json.loads(line)
        name, instruction = str(record["name"]), str(record["instruction"])
        text, path = _text(record)
        return Task(name, text, instruction, path, int(record.get("max_tokens", 2048)))
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise TaskError(f"{where}: not a task ({error!r}); give name, instruction and file, module or text.") from error


def _text(record: dict[str, str]) -> tuple[str, str]:
    if "module" in record:
        return _source(record["module"]), f"{record['module']}.py"
    if "file" in record:
        return Path(record["file"]).read_text(encoding="utf-8"), Path(record["file"]).name
    return record.get("text", ""), record.get("path", "")


def _source(module: str) -> str:
    spec: object = importlib.util.find_spec(module)
    origin = getattr(spec, "origin", None)
    if not isinstance(origin, str) or not origin.endswith(".py"):
        raise TaskError(f"This Python has no module {module} with a source file; give other tasks with --tasks.")
    return Path(origin).read_text(encoding="utf-8")

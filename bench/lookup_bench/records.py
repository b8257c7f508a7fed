"""Recorded edits: whole files before and after one change."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath

from lookup_spec.errors import LookupSpecError

MAX_FILE_BYTES = 200_000
_GIT_SECONDS = 120


class RecordError(LookupSpecError):
    """Recorded edits that cannot be read."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One change to one file.

    Attributes:
        id: names the edit in messages.
        instruction: what the change was to do, one line.
        before: the whole file before it.
        after: the whole file after it.
        path: of the file in its project, or ``""``.
        repo: the project, or ``""``.
        language: that the file is written in, or ``""``.
    """

    id: str
    instruction: str
    before: str
    after: str
    path: str = ""
    repo: str = ""
    language: str = ""


def read_edits(path: Path) -> list[Edit]:
    """The edits in a JSON Lines file with the fields ``instruction``, ``before``, ``after`` (and ``id``, ``path``,
    ``repo``, ``language``). Without the last, a file's ending stands for its language.

    Raises:
        RecordError: the file cannot be read, or a line is no such object.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"Cannot read the edits in {path}: {_reason(error)}.") from error
    edits = [_edit(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not edits:
        raise RecordError(f"{path} holds no edits; give a JSON Lines file, one edit a line.")
    return edits


def _edit(path: Path, number: int, line: str) -> Edit:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise RecordError(f"Line {number} of {path} is no JSON ({error}).") from error
    if not isinstance(record, dict):
        raise RecordError(f"Line {number} of {path} is no JSON object.")
    for field in ("instruction", "before", "after"):
        if not isinstance(record.get(field), str):
            raise RecordError(f"Line {number} of {path} has no text in its field {field!r}.")
    changed = str(record.get("path", ""))
    return Edit(
        id=str(record.get("id", f"{path.name}:{number}")),
        instruction=record["instruction"],
        before=record["before"],
        after=record["after"],
        path=changed,
        repo=str(record.get("repo", "")),
        language=str(record.get("language", PurePath(changed).suffix)),
    )


def git_edits(repository: Path, limit: int) -> list[Edit]:
    """The most recent commits that changed exactly one text file, newest first; the subject is the
    instruction.

    Args:
        repository: a directory inside a git work tree, or a bare repository.
        limit: at most this many edits.

    Raises:
        RecordError: git is not installed, this is no repository, or no commit fits.
    """
    edits = []
    for commit, subject, path in _single_file_commits(repository):
        before, after = (_git_text(repository, f"{name}:{path}") for name in (f"{commit}^", commit))
        if before is not None and after is not None and before.strip() and after.strip():
            name = repository.resolve().name
            edits.append(Edit(commit[:12], subject, before, after, path, name, PurePath(path).suffix))
            if len(edits) == limit:
                break
    if not edits:
        raise RecordError(f"The git repository {repository} has no commit that changes exactly one text file.")
    return edits


def _single_file_commits(repository: Path) -> Iterator[tuple[str, str, str]]:
    """Commit, subject and path of every commit that modifies one file and does nothing else."""
    log = _git(
        repository,
        "log",
        "--no-merges",
        "--no-renames",
        "--raw",
        "-z",
        "--abbrev=40",
        "--format=%x01%H%x02%s%x02",
    )
    for entry in log.decode("utf-8", "replace").split("\x01")[1:]:
        commit, subject, changes = entry.split("\x02", 2)
        parts = [part for part in changes.strip("\0\n").split("\0") if part.strip()]
        # Each change is ":<modes and hashes> <status>" and then its path.
        if len(parts) == 2 and parts[0].strip().split(" ")[-1] == "M" and subject.strip():
            yield commit, subject.strip(), parts[1]


def _git_text(repository: Path, name: str) -> str | None:
    """A file of a commit, or None if it is binary or large."""
    content = _git(repository, "cat-file", "blob", name)
    if len(content) > MAX_FILE_BYTES or b"\0" in content:
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _git(repository: Path, *arguments: str) -> bytes:
    try:
        done = subprocess.run(
            ["git", "-C", str(repository), *arguments],
            capture_output=True, check=True, timeout=_GIT_SECONDS,
        )  # fmt: skip
    except FileNotFoundError as error:
        raise RecordError("git is not installed; it is needed to read edits from a repository.") from error
    except subprocess.TimeoutExpired as error:
        raise RecordError(f"git took more than {_GIT_SECONDS} s on {repository}; give a smaller one.") from error
    except subprocess.CalledProcessError as error:
        raise RecordError(
            f"git cannot read {repository}: {error.stderr.decode('utf-8', 'replace').strip() or error}."
        ) from error
    return done.stdout


def read_texts(paths: Iterable[Path]) -> list[str]:
    """Whole text files, for the context.

    Raises:
        RecordError: one cannot be read as UTF-8.
    """
    texts = []
    for path in paths:
        try:
            texts.append(path.read_bytes().decode("utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise RecordError(f"Cannot read the workspace file {path}: {_reason(error)}.") from error
    return texts


def _reason(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else "it is not UTF-8 text"

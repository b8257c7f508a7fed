"""What a job is, written beside its results, so that no other job adds to them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from lookup_spec.batch.line_file import replace_lines
from lookup_spec.errors import OtherJobError, OutputError

Facts: TypeAlias = Mapping[str, str | int | float | bool | None]
"""Everything besides the requests themselves that answers depend on."""

_FORM = 1


def bind(path: Path, facts: Facts, *, fresh: bool) -> None:
    """Makes sure that results are those of this job.

    Args:
        path: of the manifest.
        facts: about this job.
        fresh: there are no results yet.

    Raises:
        OtherJobError: they are another job's.
        OutputError: the manifest cannot be read or written.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        if not fresh:
            raise OtherJobError(
                f"There are results, but {path} does not tell of which job; write to another file, or move them away."
            ) from None
        _write(path, facts)
        return
    except (OSError, UnicodeDecodeError) as error:
        raise OutputError(f"Cannot read {path}: {error}.") from error
    found = _facts(text)
    if found is None:
        raise OtherJobError(f"{path} is no manifest of a batch job; write to another file, or move it away.")
    differing = [name for name in {**found, **facts} if found.get(name) != facts.get(name)]
    if differing and fresh:
        _write(path, facts)
    elif differing:
        changes = ", ".join(f"{name} was {found.get(name)!r}, now {facts.get(name)!r}" for name in differing)
        raise OtherJobError(f"The results beside {path} are another job's: {changes}; write to another file.")


def _facts(text: str) -> dict[str, object] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    if not isinstance(found, dict) or found.get("version") != _FORM or not isinstance(found.get("job"), dict):
        return None
    return found["job"]  # type: ignore[no-any-return]  # just checked


def _write(path: Path, facts: Facts) -> None:
    text = json.dumps({"version": _FORM, "job": facts}, indent=2, ensure_ascii=False)
    replace_lines(path, [f"{text}\n".encode()])

"""Counts of what was guessed and what came of it, as plain data and as text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

Counts = list[float]
"""How often a guess came true, and how often it was made."""

Key = tuple[int, ...]
"""What was known when guesses were made."""

Table = dict[Key, Counts]
"""Counts by key."""

Tables = dict[str, Table]
"""Counts by question and key."""

_LEAST = 0.001


def count(counts: Counts, came: bool) -> None:
    """Takes in whether a guess came true."""
    counts[0] += came
    counts[1] += 1.0


def scaled(counts: Counts, most: float) -> Counts:
    """The same rate, worth at most so many observations."""
    came, tried = counts
    factor = min(1.0, most / tried)
    return [came * factor, tried * factor]


def dumps(tables: Tables, header: Mapping[str, str]) -> str:
    """JSON, one key a line, behind the header's entries."""
    entries = [f'"{name}": {json.dumps(text)}' for name, text in header.items()]
    for name, table in tables.items():
        rows = ",\n".join(
            json.dumps([*key, max(_LEAST, round(came, 3)), round(tried, 3)])
            for key, (came, tried) in sorted(table.items())
        )
        entries.append(f'"{name}": [\n{rows}\n]')
    return "{" + ",\n".join(entries) + "}\n"


def loads(text: str) -> tuple[dict[str, str], Tables]:
    """Header and tables from what :func:`dumps` wrote.

    Raises:
        ValueError: the text is something else.
    """
    try:
        entries = json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    if not isinstance(entries, dict):
        raise ValueError("it is no JSON object")
    header: dict[str, str] = {}
    tables: Tables = {}
    for name, entry in entries.items():
        if isinstance(entry, str):
            header[name] = entry
        elif isinstance(entry, list):
            tables[name] = dict(map(_row, entry))
        else:
            raise ValueError(f"{name!r} is neither a text nor a table")
    return header, tables


def _row(row: object) -> tuple[Key, Counts]:
    if not isinstance(row, list) or len(row) < 3 or not all(type(number) in (int, float) for number in row):
        raise ValueError(f"{row!r} is no row of a table")
    *key, came, tried = row
    if not all(type(number) is int for number in key) or not 0 < came <= tried < math.inf:
        raise ValueError(f"{row!r} holds no counts")
    return tuple(key), [float(came), float(tried)]

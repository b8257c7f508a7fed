"""Texts to be worked on: the files of a folder or a pattern, or the rows of a table."""

from __future__ import annotations

import csv
import glob
import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Protocol

from lookup_spec.batch.lines import read_lines
from lookup_spec.batch.request import BadLine, Request
from lookup_spec.errors import BatchError

URL = "summary"
_TABLES = (".jsonl", ".ndjson", ".csv", ".parquet")
_MOST_BYTES = 64 << 20  # of a text


class Source(Protocol):
    """Requests that can be run through again and again."""

    def count(self) -> int:
        """How many there are."""

    def requests(self) -> Iterator[Request | BadLine]:
        """All of them, in order; the same each time."""


def texts(spec: str, column: str | None, id_column: str | None) -> Source:
    """The texts of a place.

    Args:
        spec: a folder, a pattern of files (``docs/**/*.md``), a file, or a table (JSONL, CSV, Parquet).
        column: of a table, where the texts are.
        id_column: of a table, where names are; None numbers the rows.

    Raises:
        BatchError: there is nothing.
    """
    path = Path(spec)
    if path.suffix.lower() in _TABLES and path.is_file():
        if column is None:
            raise BatchError(f"{spec} is a table; say with --column where the texts are.")
        return Table(path, column, id_column)
    if column is not None or id_column is not None:
        raise BatchError(f"--column and --id-column go with a table ({', '.join(_TABLES)}), which {spec} is not.")
    if path.is_dir():
        found = [file for file in sorted(path.rglob("*")) if not _hidden(file.relative_to(path))]
        return Files(path, [file for file in found if file.is_file()])
    if path.is_file():
        return Files(path.parent, [path])
    matching = [Path(name) for name in sorted(glob.glob(spec, recursive=True))]
    return Files(Path(), [file for file in matching if file.is_file()])


class Files:
    """Files, each a text whose name is its path.

    Args:
        root: what the names are relative to.
        paths: the files.
    """

    def __init__(self, root: Path, paths: list[Path]) -> None:
        self._root = root
        self._paths = paths

    def count(self) -> int:
        """How many there are."""
        return len(self._paths)

    def requests(self) -> Iterator[Request | BadLine]:
        """A request for each."""
        for number, path in enumerate(self._paths, 1):
            name = path.relative_to(self._root).as_posix() if path.is_relative_to(self._root) else path.as_posix()
            try:
                with path.open("rb") as file:
                    data = file.read(_MOST_BYTES + 1)
                text, problem = data.decode("utf-8-sig"), ""
                if len(data) > _MOST_BYTES or "\0" in text:
                    text, problem = "", f"{path} is too long, or no text."
            except UnicodeDecodeError as error:
                text, problem = "", f"{path} is no UTF-8 text (byte {error.start})."
            except OSError as error:
                text, problem = "", f"Cannot read {path}: {error.strerror}."
            yield Request(number, name, URL, {"text": text, "name": name}, problem)


class Table:
    """Rows of a table, of which one column holds texts.

    Args:
        path: the table.
        column: the texts.
        id_column: their names; None calls them ``row-1`` and so on.

    Raises:
        BatchError: it cannot be read.
    """

    def __init__(self, path: Path, column: str, id_column: str | None) -> None:
        self._path = path
        self._column = column
        self._id_column = id_column

    def count(self) -> int:
        """How many there are."""
        return sum(1 for _ in self._rows())

    def requests(self) -> Iterator[Request | BadLine]:
        """A request for each."""
        for number, row in self._rows():
            text = row.get(self._column) if isinstance(row, dict) else None
            name: object = f"row-{number}"
            if self._id_column is not None:
                name = row.get(self._id_column) if isinstance(row, dict) else None
            if name is None or name == "":
                digest = Request(number, "", "", {}).digest
                yield BadLine(number, digest, "invalid_custom_id", f"Row {number} has no {self._id_column}.")
            elif isinstance(text, str):
                yield Request(number, str(name), URL, {"text": text, "name": str(name)})
            else:
                yield Request(number, str(name), URL, {}, f"Row {number} has no text in the column {self._column!r}.")

    def _rows(self) -> Iterator[tuple[int, object]]:
        suffix = self._path.suffix.lower()
        try:
            if suffix == ".csv":
                yield from self._csv()
            elif suffix == ".parquet":
                yield from self._parquet()
            else:
                yield from self._jsonl()
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise BatchError(f"Cannot read {self._path}: {error}.") from error

    def _jsonl(self) -> Iterator[tuple[int, object]]:
        with self._path.open("rb") as file:
            for line in read_lines(file):
                try:
                    yield line.number, json.loads(line.data)
                except (ValueError, RecursionError):
                    yield line.number, None

    def _csv(self) -> Iterator[tuple[int, object]]:
        csv.field_size_limit(_MOST_BYTES)
        with self._path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            self._check(rows.fieldnames or ())
            yield from enumerate(rows, 1)

    def _parquet(self) -> Iterator[tuple[int, object]]:
        try:
            from pyarrow import parquet  # noqa: PLC0415 - heavy, and needed for these files only
        except ModuleNotFoundError as error:
            raise BatchError("Parquet files need pyarrow; install it with: pip install 'lookup-spec[batch]'") from error
        with parquet.ParquetFile(self._path) as file:
            self._check(file.schema_arrow.names)
            columns = [name for name in (self._column, self._id_column) if name is not None]
            number = 0
            for block in file.iter_batches(batch_size=256, columns=columns):
                for row in block.to_pylist():
                    number += 1
                    yield number, row

    def _check(self, names: Collection[str]) -> None:
        for name in (self._column, self._id_column):
            if name is not None and name not in names:
                raise BatchError(f"{self._path} has no column {name!r}; it has {', '.join(map(repr, names))}.")


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)

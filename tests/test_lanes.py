"""The lanes stay apart: nothing imports sideways into another lane, and nothing imports upward."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {
    "lookup_spec": ROOT / "lookup_spec",
    "lookup_server": ROOT / "server" / "lookup_server",
    "lookup_bench": ROOT / "bench" / "lookup_bench",
}
VALUES = {"lookup_spec", "errors", "grammar", "params", "stats", "_version"}  # what everyone speaks
LIBRARY = {*VALUES, "propose", "text", "model", "engine", "pipeline", "batch"}
# What the modules of each area may import among our own areas, when they run.
MAY_IMPORT = {
    "propose": {*VALUES, "propose"},
    "text": {*VALUES, "text"},
    "model": {*VALUES, "model"},
    "engine": {*VALUES, "engine", "model", "propose"},
    "pipeline": {*LIBRARY} - {"batch"},
    "batch": {*LIBRARY},
    "lsp": {*VALUES, "text", "lsp"},
    "lookup_server": {*LIBRARY, "lookup_server"},
    "lookup_bench": {*LIBRARY, "lookup_bench"},
    "cli": {*LIBRARY, "cli", "lsp", "lookup_server", "lookup_bench"},
    "errors": VALUES,
    "grammar": VALUES,
    "params": VALUES,
    "stats": VALUES,
    "_version": set(),
}
# Of third-party libraries, the only ones that the lower lanes may import when they run.
MAY_USE = {
    "propose": {"numpy"},
    "text": {"tokenizers", "jinja2", "llguidance", "tree_sitter"},
}


def modules() -> Iterator[tuple[str, Path]]:
    """Every module of ours with its area; the front door ``lookup_spec/__init__`` belongs to none."""
    for package, folder in PACKAGES.items():
        for path in sorted(folder.rglob("*.py")):
            inside = path.relative_to(folder)
            if package != "lookup_spec":
                yield package, path
            elif inside.parts != ("__init__.py",):
                yield inside.parts[0].removesuffix(".py"), path


def imports_when_run(tree: ast.AST) -> Iterator[str]:
    """Dotted names of all imports, also those within functions, but not those for type checkers alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for other in node.orelse:
                yield from imports_when_run(ast.Module([other], []))
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide where a name comes from"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        else:
            yield from imports_when_run(node)


def area_of(name: str) -> str | None:
    """The area of ours that a dotted name belongs to, or None if it is not ours."""
    first, *rest = name.split(".")
    if first not in PACKAGES:
        return None
    areas = {path.stem for path in PACKAGES["lookup_spec"].iterdir()}
    return rest[0] if first == "lookup_spec" and rest and rest[0] in areas else first


def offences(area: str, path: Path) -> list[str]:
    found = []
    for name in imports_when_run(ast.parse(path.read_text(encoding="utf-8"))):
        ours, library = area_of(name), name.split(".")[0]
        if ours is not None:
            wrong = ours not in MAY_IMPORT[area]
        else:
            wrong = area in MAY_USE and library not in MAY_USE[area] | sys.stdlib_module_names
        if wrong:
            found.append(name)
    return found


@pytest.mark.parametrize("area", MAY_IMPORT)
def test_an_area_imports_only_what_lies_below_it(area):
    """No module imports another lane, an upper layer, or a library that its lane must do without."""
    files = [path for other, path in modules() if other == area]
    assert files, f"no module of {area} was found"
    assert {str(path.relative_to(ROOT)): found for path in files if (found := offences(area, path))} == {}


def test_every_area_has_its_rule():
    """A new area cannot be forgotten here."""
    assert {area for area, _ in modules()} <= set(MAY_IMPORT)


def test_an_offence_would_be_found(tmp_path):
    """The check sees imports at the top, within functions and behind aliases, and lets type checking be."""
    module = tmp_path / "module.py"
    module.write_text(
        "from typing import TYPE_CHECKING\n"
        "import torch.nn as nn\n"
        "from lookup_spec import engine\n"
        "if TYPE_CHECKING:\n    import transformers\n"
        "def f():\n    from lookup_spec.text.stops import StopScanner\n"
    )
    assert offences("propose", module) == [
        "torch.nn",
        "lookup_spec.engine",
        "lookup_spec.text.stops.StopScanner",
    ]


@pytest.mark.parametrize(
    ("lane", "unwanted"), [("propose", "torch transformers tokenizers tree_sitter"), ("text", "torch")]
)
def test_lower_lanes_load_without_heavy_libraries(lane, unwanted):
    """Importing the package and every module of the lane leaves torch and its like unloaded."""
    names = [f"lookup_spec.{lane}.{path.stem}" for path in (ROOT / "lookup_spec" / lane).glob("[!_]*.py")]
    code = f"import sys, lookup_spec, {', '.join(names)}; print(*(set({unwanted.split()}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr

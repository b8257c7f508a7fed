"""Models that come as installed packages: found without importing them, joined, and checked."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from lookup_spec.errors import ModelError
from lookup_spec.model import embedded
from lookup_spec.model.embedded import EMBEDDED, EmbeddedModel, assemble, assembled_path, is_installed, parts

CONTENTS = [b"first part|", b"second part|" * 1000, b"third"]
WHOLE = b"".join(CONTENTS)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("LOOKUP_SPEC_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EmbeddedModel:
    """Three installed packages that make up one file; importing one of them would fail."""
    site = tmp_path / "site"
    for number, content in enumerate(CONTENTS, 1):
        install(site, number, content)
    monkeypatch.syspath_prepend(str(site))
    return EmbeddedModel(
        name="toy",
        packages=("toy-model-part1", "toy-model-part2", "toy-model-part3"),
        version="1.0",
        pattern="*/data/part*.bin",
        size=len(WHOLE),
        sha256=hashlib.sha256(WHOLE).hexdigest(),
        parameters=1,
        extra="embedded-toy",
        licence="none",
    )


def install(site: Path, number: int, content: bytes) -> None:
    package = f"toy_model_part{number}"
    info = site / f"{package}-1.0.dist-info"
    data = site / package / "data"
    info.mkdir(parents=True)
    data.mkdir(parents=True)
    (site / package / "__init__.py").write_text("raise RuntimeError('imported')")
    (data / f"part0{number}.bin").write_bytes(content)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: toy-model-part{number}\nVersion: 1.0\n")
    (info / "RECORD").write_text(f"{package}/__init__.py,,\n{package}/data/part0{number}.bin,,\n")


def part(tmp_path: Path, number: int) -> Path:
    return tmp_path / "site" / f"toy_model_part{number}" / "data" / f"part0{number}.bin"


def test_parts_are_joined_in_order(model: EmbeddedModel) -> None:
    """The cached file is the parts one after another, made once."""
    said: list[str] = []
    path = assemble(model, said.append)
    assert path.read_bytes() == WHOLE
    assert len(said) == 1
    assert assemble(model, said.append) == path
    assert len(said) == 1


def test_packages_are_never_imported(model: EmbeddedModel) -> None:
    """Finding and joining the parts runs none of the packages' code."""
    assemble(model, lambda _: None)
    assert not [name for name in sys.modules if name.startswith("toy_model")]


@pytest.mark.parametrize("corrupt", [b"", b"first part?", b"first part|and more"])
def test_corrupt_parts_are_refused_and_leave_nothing(
    model: EmbeddedModel, tmp_path: Path, cache: Path, corrupt: bytes
) -> None:
    """A changed, truncated or longer part fails the check, names the remedy and leaves no file behind."""
    part(tmp_path, 1).write_bytes(corrupt)
    with pytest.raises(ModelError, match=r"toy give .* --force-reinstall"):
        assemble(model, lambda _: None)
    assert [path.name for path in (cache / "gguf").iterdir() if not path.name.endswith(".lock")] == []
    part(tmp_path, 1).write_bytes(CONTENTS[0])
    assert assemble(model, lambda _: None).read_bytes() == WHOLE


def test_a_missing_package_names_the_command(model: EmbeddedModel) -> None:
    """What is not installed is named together with the command that installs it."""
    missing = replace(model, packages=(*model.packages, "toy-model-part4"))
    assert is_installed(model)
    assert not is_installed(missing)
    with pytest.raises(ModelError, match=r"toy-model-part4 is missing.*pip install 'lookup-spec\[embedded-toy\]'"):
        assemble(missing, lambda _: None)


def test_a_package_without_its_file_is_refused(model: EmbeddedModel, tmp_path: Path) -> None:
    """A package whose file is gone is refused, not skipped."""
    part(tmp_path, 2).unlink()
    with pytest.raises(ModelError, match=r"toy-model-part2 1\.0 should hold one file"):
        parts(model)


def test_two_processes_assemble_at_once(model: EmbeddedModel, tmp_path: Path) -> None:
    """Two processes that start together end with one whole file and no error."""
    code = textwrap.dedent(
        f"""
        import sys
        sys.path.insert(0, {str(tmp_path / "site")!r})
        from lookup_spec.model.embedded import EmbeddedModel, assemble
        print(assemble({model!r}, lambda _: None).stat().st_size)
        """
    )
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", code]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) for _ in range(2)]
    assert [process.communicate(timeout=60)[0].strip() for process in running] == [str(len(WHOLE))] * 2
    assert assembled_path(model).read_bytes() == WHOLE


def test_extras_pin_the_packages_of_the_catalogue() -> None:
    """The project's extras name exactly the packages and versions that the catalogue looks for."""
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    for model in EMBEDDED.values():
        if model.extra:
            assert f"\n{model.extra} = [" in project
            assert all(f'"{package}=={model.version}"' in project for package in model.packages)


def test_the_default_comes_first_and_its_stand_in_second() -> None:
    """The catalogue's order decides which models stand in for each other."""
    assert (embedded.DEFAULT, embedded.LIGHT) == (
        "qwen2.5-coder-1.5b-instruct",
        "qwen2.5-coder-0.5b-instruct",
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", list(EMBEDDED))
def test_installed_models_have_the_pinned_sums(name: str) -> None:
    """The packages as published give the pinned size and sha256."""
    model = EMBEDDED[name]
    if not is_installed(model):
        pytest.skip(f"{model.install_command}")
    assert assemble(model, lambda _: None).stat().st_size == model.size

"""What runs the service elsewhere: the container's recipe and the systemd unit say what is so."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from lookup_server.configuration import load_settings
from lookup_server.settings import Settings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "server" / "deploy"


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"^#.*\n", "", (DEPLOY / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in text.splitlines() if line)]


def variables(kind: str) -> dict[str, str]:
    """The service's settings that a file makes from the environment."""
    if kind == "Dockerfile":
        lines = [rest for word, rest in instructions() if word == "ENV"]
    else:
        unit = (DEPLOY / "lookup-spec.service").read_text()
        lines = re.findall(r"^Environment=(.*)$", unit, flags=re.MULTILINE)
    pairs = [pair.partition("=") for line in lines for pair in shlex.split(line)]
    return {name: value for name, _, value in pairs if name.startswith("LOOKUP_SPEC_")}


@pytest.mark.parametrize("kind", ["Dockerfile", "lookup-spec.service"])
def test_the_environment_that_is_set_there_is_understood(kind: str) -> None:
    settings = load_settings({}, variables(kind))
    assert settings.calibration is not None
    if kind == "Dockerfile":
        assert (settings.host, settings.port, settings.log_format) == ("0.0.0.0", Settings().port, "json")


def test_what_the_image_is_built_from_is_there_and_enough(tmp_path: Path) -> None:
    """A wheel made of the copied files alone has all packages, and the playground's files."""
    pytest.importorskip("hatchling")
    copied = [shlex.split(rest) for word, rest in instructions() if word == "COPY" and not rest.startswith("--from")]
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    for *sources, target in copied:
        for source in sources:
            assert f"!{source}" in ignored, source
            place = tmp_path / "src" / (source if target == "./" else target)
            place.parent.mkdir(parents=True, exist_ok=True)
            found = ROOT / source
            shutil.copytree(found, place) if found.is_dir() else shutil.copy(found, place)
    from hatchling.builders.wheel import WheelBuilder

    [wheel] = WheelBuilder(str(tmp_path / "src")).build(directory=str(tmp_path / "out"), versions=["standard"])
    names = zipfile.ZipFile(wheel).namelist()
    for name in ("lookup_spec/cli/serve.py", "lookup_server/playground/index.html", "lookup_bench/cli.py"):
        assert name in names


def test_the_commands_exist_and_the_service_has_time_to_end() -> None:
    words = dict(instructions())
    assert (words["ENTRYPOINT"], words["CMD"]) == ('["lookup-spec"]', '["serve"]')
    unit = (DEPLOY / "lookup-spec.service").read_text()
    assert "ExecStart=/opt/lookup-spec/bin/lookup-spec serve\n" in unit
    [seconds] = re.findall(r"^TimeoutStopSec=(\d+)$", unit, flags=re.MULTILINE)
    assert int(seconds) > Settings().grace_seconds + 2


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "lookup-spec.service"
    unit.write_text(
        (DEPLOY / "lookup-spec.service").read_text().replace("/opt/lookup-spec/bin/lookup-spec", "/bin/true")
    )
    found = subprocess.run(
        ["systemd-analyze", "verify", unit], capture_output=True, text=True, timeout=120, check=False
    )
    assert (found.returncode, found.stderr) == (0, "")

"""What the page says about Emacs, in Emacs, with recorded edits."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.replay import RECORDINGS, replay

ROOT = Path(__file__).parents[2]
EMACS = shutil.which("emacs")
EDITED = ("one-line", "several-hunks", "astral", "no-final-newline", "truncated")


def has_eglot() -> bool:
    if EMACS is None:
        return False
    return subprocess.run([EMACS, "--batch", "-l", "eglot"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not has_eglot(), reason="Emacs or eglot is not installed")
def test_emacs_set_up_as_the_page_says_makes_the_recorded_documents(tmp_path: Path) -> None:
    """Of each edit all changes at once, so that one undo takes them back."""
    page = (ROOT / "editors" / "README.md").read_text(encoding="utf-8")
    [setup] = re.findall(r"```elisp\n(.*?)```", page, re.DOTALL)
    (tmp_path / "init.el").write_text(setup)
    program = tmp_path / "lookup-spec"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "from lookup_spec.cli import main; main()" "$@"\n')
    program.chmod(0o755)
    files = [tmp_path / f"{name}.py" for name in EDITED]
    for name, file in zip(EDITED, files, strict=True):
        file.write_bytes(RECORDINGS[name]["base"].encode())
    with replay() as service:
        names = {"HOME": str(tmp_path), "LOOKUP_SPEC_URL": service.url, "PYTHONPATH": str(ROOT)}
        driver, result = Path(__file__).with_name("drive.el"), tmp_path / "result.json"
        run = subprocess.run(
            ["emacs", "--batch", "-l", tmp_path / "init.el", "-l", driver, "--", result, *files],
            env={**os.environ, **names, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
            timeout=200,
            capture_output=True,
            text=True,
            check=False,
        )
    assert run.returncode == 0, run.stderr
    became = json.loads(result.read_text(encoding="utf-8"))
    assert len(became) == len(EDITED)
    for name, one in zip(EDITED, became, strict=True):
        assert one["after"] == RECORDINGS[name]["final"], one["said"]
        assert one["undone"] == RECORDINGS[name]["base"]

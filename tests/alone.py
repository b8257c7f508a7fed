"""Programs among the tests that want a process of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def alone(module: str, *arguments: object) -> Any:
    """Runs a module on one thread of processing to its end; returns what the last line that it prints says as JSON."""
    paths = os.pathsep.join(str(ROOT / part) for part in ("", "server", "bench"))
    done = subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])

"""The official OpenAI client for Node, unchanged."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.server.tiny_service import Running, until

SCRIPT = Path(__file__).with_name("node_sdk.mjs")
VERSION = "6"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_the_node_sdk_reads_all_that_it_asks_for(service: Running, tmp_path: Path) -> None:
    """Whole replies, streams, its stream helper, predictions, choices, forms, errors, and a stream that it leaves."""
    install = ["npm", "install", "--no-audit", "--no-fund", "--silent", f"openai@{VERSION}"]
    if subprocess.run(install, cwd=tmp_path, capture_output=True, timeout=240, check=False).returncode:
        pytest.skip("the SDK cannot be installed from here")
    shutil.copy(SCRIPT, tmp_path)
    run = subprocess.run(
        ["node", SCRIPT.name, service.url], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    assert told["whole"] == told["streamed"] == told["helper"] == told["predicted"] != ""
    for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
        assert told["usage"][name] == told["streamUsage"][name]
    assert told["details"]["accepted_prediction_tokens"] + told["details"]["rejected_prediction_tokens"] > 0
    assert told["choices"] == [[0, 5], [1, 5], [2, 5], [3, 5]]
    assert told["models"] == ["tiny", "org/alias"]
    assert isinstance(told["formed"]["a"], bool)
    assert told["missing"] == [True, "model_not_found"]
    assert told["refused"] == [True, "temperature"]
    until(lambda: service.runner.active == 0)

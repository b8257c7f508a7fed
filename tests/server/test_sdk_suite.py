"""The tests that OpenAI publishes its Python SDK with, as they are, against the running command."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import openai
import pytest

from tests.server.test_serve import command
from tests.server.tiny_service import tiny_model

FILES = [f"tests/api_resources/{name}.py" for name in ("chat/test_completions", "test_completions", "test_models")]
FILES += [f"tests/api_resources/{name}.py" for name in ("test_files", "test_batches")]
# What of them is left out, and why: a pattern of their names.
LEFT_OUT = {
    r"test_path_params_": "the SDK itself refuses; nothing is sent",
    r"test_\w+_content\b": "a mock within the test answers; nothing is sent",
    r"test_\w+_retrieve_content\b": "it is given the JSON text that only a mock server has for a file",
    r"/chat/.*test_\w+_(retrieve|update|list|delete)": "chats are not stored",
    r"completions\.py::.*_with_all_params_overload_": "sound, and a bias of what is no token, are refused",
    r"test_models\.py::.*test_\w+_delete": "nobody deletes the model",
    r"test_files\.py::.*test_\w+_create": "the purpose is assistants, which are not offered: refused",
    r"test_(files|batches)\.py::.*test_\w+_(retrieve|delete|cancel)\b": "only a mock server has its file or batch",
    r"test_(files|batches)\.py::.*_list_with_all_params": "only a mock server has its file or batch",
    r"test_batches\.py::.*test_\w+_create": "it is of /v1/responses, which is not offered: refused",
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("pytest_asyncio") is None, reason="pytest-asyncio is not installed"),
]


@pytest.fixture(scope="module")
def suite(request: pytest.FixtureRequest) -> Path:
    """The source of the installed SDK, fetched once from where packages come from."""
    name = f"openai-{openai.__version__}"
    kept = request.config.cache.mkdir("openai-source")
    if not (kept / name).is_dir():
        fetch = ["download", "--quiet", "--no-deps", "--no-binary=openai", f"--dest={kept}", name.replace("-", "==")]
        done = subprocess.run([sys.executable, "-m", "pip", *fetch], capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"the source of {name} cannot be fetched: {done.stderr.strip().splitlines()[-1]}")
        with tarfile.open(kept / f"{name}.tar.gz") as source:
            source.extractall(kept / f"{name}.partial", filter="data")
        (kept / f"{name}.partial" / name).rename(kept / name)
    return kept / name


def suite_run(suite: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs tests of the suite by its own settings, without the plugins that ours have."""
    own = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "OPENAI_"))}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-o", "addopts=", "-p", "pytest_asyncio.plugin", *arguments],
        cwd=suite,
        env={**own, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_sdks_own_tests_pass(suite: Path, tmp_path: Path) -> None:
    """Every method with what it needs, as parsed, raw and streamed replies, of the sync and the async clients."""
    listed = suite_run(suite, "--collect-only", *FILES).stdout
    names = [line for line in listed.splitlines() if "::" in line]
    chosen = [name for name in names if not any(re.search(pattern, name) for pattern in LEFT_OUT)]
    assert len(chosen) > 40, listed
    (tmp_path / "chosen").write_text("\n".join(chosen))

    loaded = tiny_model()
    loaded.model.save_pretrained(tmp_path / "model")
    loaded.tokenizer.save_pretrained(tmp_path / "model")
    models = {name for file in FILES for name in re.findall(r'"(gpt-[^"]*)"', (suite / file).read_text())}
    called = [argument for name in sorted(models) for argument in ("--served-model-name", f"{name},max_tokens=16")]
    arguments = ["--model", str(tmp_path / "model"), "--dtype", "float32", "--batch-dir", str(tmp_path / "kept")]
    with command(*arguments, "--port", "0", *called) as (_, url):
        done = suite_run(suite, f"@{tmp_path / 'chosen'}", TEST_API_BASE_URL=f"{url}v1")
    assert done.returncode == 0, done.stdout
    assert re.search(rf"^{len(chosen)} passed", done.stdout, re.MULTILINE), done.stdout

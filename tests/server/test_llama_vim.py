"""llama.vim itself, in Vim, unchanged: what is filled in appears, and Tab takes it into the file."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from fakes.scribe import Scribe
from lookup_server.settings import Settings

from tests.server.tiny_service import FIM, running, tiny_model, until

PLUGIN = os.environ.get("LLAMA_VIM", "")  # where the plugin is: a folder with autoload/llama.vim in it
TEXT = "def add(a, b):\n    ret\n\n\nprint(add(1, 2))\n"


@pytest.mark.slow
@pytest.mark.skipif(not PLUGIN or shutil.which("vim") is None, reason="LLAMA_VIM names no plugin, or there is no Vim")
def test_a_completion_is_shown_and_taken(tmp_path: Path) -> None:
    file, settings = tmp_path / "a.py", tmp_path / "vimrc"
    file.write_text(TEXT)
    scribe = Scribe(tiny_model(FIM), "urn a + b")
    with running(scribe, Settings()) as service:
        settings.write_text(
            f"set nocompatible rtp+={PLUGIN} noswapfile viminfo=\n"
            "runtime autoload/llama.vim\n"
            # Older and newer versions have different names for the address.
            f"let address = '{service.url}/infill'\n"
            "call extend(g:llama_config, {'endpoint': address, 'endpoint_fim': address, 'show_info': 0, "
            "'t_max_predict_ms': 5000, 't_max_prompt_ms': 5000})\n"
            "call llama#init()\n"
        )
        screen, keyboard = pty.openpty()
        vim = subprocess.Popen(
            ["vim", "-u", settings, file],
            stdin=keyboard,
            stdout=keyboard,
            stderr=keyboard,
            env={**os.environ, "TERM": "xterm"},
            start_new_session=True,
        )
        shown = b""

        def look(seconds: float) -> None:
            nonlocal shown
            end = time.monotonic() + seconds
            while select.select([screen], [], [], max(end - time.monotonic(), 0))[0]:
                shown += os.read(screen, 65536)

        def appeared() -> bool:
            look(0.2)
            return b"urn a + b" in shown

        try:
            look(1.5)
            os.write(screen, b"2GA")
            until(appeared, 30)
            os.write(screen, b"\t")
            look(0.5)
            os.write(screen, b"\x1b:wq\r")
            until(lambda: bool(look(0.2)) or vim.poll() is not None, 30)
        finally:
            vim.kill()
            vim.wait()
            os.close(screen)
            os.close(keyboard)
        assert file.read_text() == TEXT.replace("    ret\n", "    return a + b\n")
        pieces = [b"".join(scribe.vocabulary.piece(token) for token in ids) for ids in scribe.asked]
        prompts = [piece.decode(errors="replace") for piece in pieces]
        assert any("def add(a, b):\n    ret" in prompt for prompt in prompts)

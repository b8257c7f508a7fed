"""What a job holds does not grow with its length."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.alone import alone

LINES = 800
KEPT = 4  # of Python's blocks for each line: less than a request or a result has, more than what comes and goes
MOST_GROWTH = 24.0  # megabytes, which are tensors and what the allocator does not give back


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="tells its memory in another way")
def test_memory_and_open_files_are_level_once_what_is_kept_of_texts_is_full(tmp_path: Path) -> None:
    """The second half of a job keeps no line in memory, and takes hardly more of it than the first half."""
    looks = alone("tests.batch.steady", tmp_path, LINES)
    assert looks[-1][0] == LINES
    _, megabytes, blocks, handles = (list(column) for column in zip(*looks, strict=True))
    half = len(looks) // 2
    assert max(blocks[half:]) < blocks[half] + KEPT * (LINES - looks[half][0]), looks
    assert max(megabytes[half:]) < megabytes[half] + MOST_GROWTH, looks
    assert max(handles) <= min(handles) + 2, looks

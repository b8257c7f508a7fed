from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup_spec.text.diff import diff_lines

LINES = st.text("ab\n\r\x0c\u2028", max_size=12)


@given(text=LINES)
def test_equal_texts_have_no_diff(text):
    """Nothing changed, nothing shown."""
    assert not list(diff_lines(text, text))


def test_a_missing_final_newline_is_shown_as_diff_tools_show_it():
    """Lines without a newline carry the usual remark, on the side that lacks it."""
    assert list(diff_lines("a\nb", "a\nc\n", "x.py")) == [
        "--- a/x.py\n",
        "+++ b/x.py\n",
        "@@ -1,2 +1,2 @@\n",
        " a\n",
        "-b\n\\ No newline at end of file\n",
        "+c\n",
    ]


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
@settings(max_examples=40, deadline=None)
@given(old=LINES, new=LINES)
def test_git_apply_turns_the_old_text_into_the_new(tmp_path_factory, old, new):
    """The diff is one that git accepts, byte for byte, whatever the line ends."""
    folder = tmp_path_factory.mktemp("diff")
    path = folder / "file"
    path.write_bytes(old.encode())
    patch = "".join(diff_lines(old, new))
    if old and new and patch:  # git writes creations and deletions differently
        subprocess.run(["git", "apply", "-"], cwd=folder, input=patch.encode(), check=True, capture_output=True)
        assert path.read_bytes() == new.encode()

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lookup_spec.errors import EditError
from lookup_spec.text.answer import AnswerReader, read_answer
from lookup_spec.text.fences import fence_for

README = (
    '# Tool\n\nRun:\n\n```bash\nmake run\n```\n\nConfig:\n\n````md\n```json\n{"port": 80}\n```\n````\n\n'
    "=======\nEnd of file.\n"
)
EDITED = README.replace("make run", "make start")
CODE = "def add(a, b):\n    return a + b\n\n\nprint(add(1, 2))\n"
FENCE = fence_for(README)
BLOCKS = st.lists(
    st.sampled_from(["a", "b", "", "```", "```py", "````", "~~~", "Done.", "    ```", "x `y`"]), max_size=8
).map(lambda lines: "".join(f"{line}\n" for line in lines))
CLOSED = st.lists(
    st.sampled_from(["a\n", "b\n", "\n", "```\na\n```\n", "````md\n```\n````\n", "Done.\n", "Part\n~~~~\n"]), max_size=8
).map("".join)


def wrapped(opening: str, closing: str | None, file: str = EDITED) -> str:
    return f"Here is the file:\n\n{opening}\n{file}" + (f"{closing}\nDone." if closing else "")


@given(text=st.text("`~a\n"))
def test_a_fence_is_longer_than_any_run_of_backticks(text):
    """No run of backticks in the text is as long as the fence chosen for it."""
    fence = fence_for(text)
    assert len(fence) >= 3
    assert fence not in text


@pytest.mark.parametrize("opened", [True, False])
@pytest.mark.parametrize(
    "answer",
    [
        wrapped("```markdown", "```"),
        wrapped("````markdown", "````"),
        wrapped("~~~", "~~~"),
        wrapped(f"{FENCE}markdown", FENCE),
        wrapped("```markdown", None),
        EDITED,
        EDITED.removesuffix("\n"),
        wrapped("```markdown", "```").replace("\n", "\r\n"),
    ],
)
def test_fences_of_the_file_do_not_confuse_the_reader(answer, opened):
    """Whatever the wrapper, talk around it goes, and all fences inside the file stay."""
    assert read_answer(answer, README, FENCE, opened=opened) == EDITED


@pytest.mark.parametrize(
    "answer",
    [
        f"{EDITED}{FENCE}",
        f"{EDITED}{FENCE}\nDone.\n",
        f"{EDITED}{FENCE}\n\n",
        f"{EDITED}{FENCE}".replace("\n", "\r\n"),
    ],
)
def test_an_answer_that_continues_the_opened_fence_is_the_file(answer):
    """The asked-for form: the answer begins inside the file and ends with its fence."""
    assert read_answer(answer, README, FENCE, opened=True) == EDITED


@pytest.mark.parametrize("tail", ["```", "```\n\nDone.", "````\n"])
def test_a_shorter_closing_fence_than_the_opened_one_comes_off(tail):
    """Small models close a long fence with a short one: behind the base's last line it is the end."""
    assert read_answer(EDITED + tail, README, FENCE, opened=True) == EDITED


@pytest.mark.parametrize("tail", ["", "```", "````", "````\nDone."])
def test_a_block_at_the_end_of_the_file_keeps_its_fence(tail):
    """A file that ends with a block keeps that block's closing fence, and no second one."""
    base = "# Tool\n\n```\nmake run\n```\n"
    new = base.replace("run", "start")
    assert read_answer(new + tail, base, "````", opened=True) == new


@pytest.mark.parametrize("opened", [True, False])
@pytest.mark.parametrize(
    "answer",
    [
        f"Here is the file:\n\n{EDITED}Done.",
        f"Here is the file:\n\n{EDITED}",
        f"{EDITED}Done.",
        "Here is the file:\n\n```markdown\n" + EDITED + "Done.",
        "# Tool\n\n```\nRun:\n```\n",
        "I cannot do that.",
        "```bash\nmake start\n```",
        "Use this:\n```bash\nmake start\n```\nEnd of file.",
    ],
)
def test_an_unclear_answer_is_refused(answer, opened):
    """Talk without a fence around the file, or a fragment of it, is refused rather than applied."""
    with pytest.raises(EditError, match="left as it was"):
        read_answer(answer, README, FENCE, opened=opened)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("x = 2\n```", "x = 2\n"),
        ("x = 2\n```\nI changed x.", "x = 2\n"),
        ("```python\nx = 2\n```", "x = 2\n"),
        ("```python\nx = 2\n```\n```", None),
        ("x = 2\n```\nI changed x:\n```\n", None),
        ("x = 2", None),
        ("x = 1\ny = 2", None),
        ("y = 2\nx = 1", None),
    ],
)
def test_a_file_of_one_line(answer, expected):
    """With one line, changed, there is little to tell by: the clear forms are read, others refused."""
    if expected is None:
        with pytest.raises(EditError):
            read_answer(answer, "x = 1\n", "```", opened=True)
    else:
        assert read_answer(answer, "x = 1\n", "```", opened=True) == expected


@pytest.mark.parametrize("answer", ["", "\n", "```", "```python\n```", "\n\n```\n"])
@pytest.mark.parametrize("opened", [True, False])
def test_an_empty_answer_never_empties_a_file(answer, opened):
    """An answer without a line of text is refused for a file that has one."""
    with pytest.raises(EditError, match="empty"):
        read_answer(answer, CODE, "```", opened=opened)


def test_a_block_added_in_the_file_stays():
    """A block that the edit adds, as long as the outer fence, is told from the wrapper by the base's end."""
    base = "Intro.\n\nEnd of file.\n"
    new = "Intro.\n\n```\nmake\n```\n\nEnd of file.\n"
    assert read_answer(new + "```", base, "```", opened=True) == new
    assert read_answer(f"```\n{new}```", base, "```") == new


def test_talk_with_a_block_behind_the_file_is_dropped():
    """An explanation with a block of its own, behind the closing fence, is dropped."""
    answer = CODE.replace("1, 2", "3, 4").replace("print", "show") + "show(1)\n```\nRun it:\n```bash\npython x\n```\n"
    assert read_answer(answer, CODE, "```", opened=True) == answer.partition("```")[0]
    kept = CODE.replace("a + b", "b + a")
    assert read_answer(f"{kept}```\nRun it:\n```bash\npython x\n```\n", CODE, "```", opened=True) == kept


def test_underlines_of_headings_are_no_fences():
    """Tildes under a heading are contents of a file whose fence is of backticks."""
    base = "Title\n~~~~~\n\ntext\n\nPart\n~~~~\n\nmore\n"
    new = base.replace("text", "TEXT")
    assert read_answer(new + "````", base, "````", opened=True) == new
    assert read_answer(new.replace("Title", "Tilte") + "````", base, "````", opened=True) == new.replace(
        "Title", "Tilte"
    )


def test_a_file_with_a_lone_fence_line_can_be_edited():
    """A file that opens a block and never closes it is edited like any other."""
    base = "a = '''\n```\nb\n'''\n"
    assert read_answer(base.replace("b", "c") + "````", base, "````", opened=True) == base.replace("b", "c")


@pytest.mark.parametrize("base", [CODE, CODE.removesuffix("\n"), "", "\n"])
@pytest.mark.parametrize("tail", ["```", "```\n", "\n```"])
def test_the_final_newline_is_as_it_was(base, tail):
    """The file ends with a newline exactly if the base does; a new file ends with one."""
    new = base.removesuffix("\n").replace("a + b", "b + a") or "x"
    file = read_answer(f"{new}\n{tail}", base, "```", opened=True)
    assert file.endswith("\n") == (base.endswith("\n") or not base)
    assert file.rstrip("\n") == new


@given(
    base=BLOCKS,
    answer=BLOCKS,
    cuts=st.lists(st.integers(0, 60), max_size=6),
    opened=st.booleans(),
    crlf=st.booleans(),
)
def test_the_stream_gives_what_the_whole_answer_gives(base, answer, *, cuts, opened, crlf):
    """However the answer is cut, the pieces joined are the file, or the whole is refused by both."""
    answer = answer.replace("\n", "\r\n") if crlf else answer
    edges = sorted({0, len(answer), *(min(cut, len(answer)) for cut in cuts)})
    fence = fence_for(base)
    reader = AnswerReader(base, fence, opened=opened)
    given_ = "".join(reader.push(answer[a:b]) for a, b in itertools.pairwise(edges))
    try:
        expected = read_answer(answer, base, fence, opened=opened)
    except EditError as error:
        with pytest.raises(EditError, match=re.escape(str(error))):
            reader.finish()
    else:
        assert given_ + reader.finish() == expected


@given(base=BLOCKS, new=CLOSED)
def test_an_answer_in_the_asked_form_is_read_exactly(base, new):
    """Inside the asked-for fence, longer than any run in both texts, any file whose blocks are closed is read
    back or refused, and never read differently; but one that is a single block may count as wrapped twice."""
    fence = fence_for(base + new)
    assume(new.strip() and not new.strip().startswith("`"))
    try:
        file = read_answer(new + fence, base, fence, opened=True)
    except EditError:
        return
    assert file.rstrip("\n") == new.rstrip("\n")
    assert file == new or not base.endswith("\n")


@pytest.mark.parametrize(
    ("rows", "partial"),
    [
        (range(10, 20), True),
        (range(1, 20), True),
        (range(40, 61), True),
        ([1, *range(30, 40), 60], False),
        (range(20, 58), False),
    ],
)
def test_a_fragment_of_a_long_file_is_refused(rows, partial):
    """Less than half of a long file, with its beginning or end missing, is taken for a fragment."""
    base = "".join(f"row {n}\n" for n in range(1, 61))
    new = "".join(f"row {n}\n" for n in rows)
    if partial:
        with pytest.raises(EditError, match="part of the file"):
            read_answer(new + "```", base, "```", opened=True)
    else:
        assert read_answer(new + "```", base, "```", opened=True) == new


@pytest.mark.parametrize(
    "line", ["# ... rest of the function", "// ... existing code ...", "# Rest of the code is the same"]
)
def test_lines_left_out_by_a_comment_are_noticed(line):
    """A comment that stands for omitted lines makes the answer a part, unless the base has that comment."""
    new = f"def add(a, b):\n{line}\n"
    with pytest.raises(EditError, match="part of the file"):
        read_answer(new + "```", CODE, "```", opened=True)
    assert read_answer(f"{CODE}{line}\nx\n```", f"{CODE}{line}\n", "```", opened=True) == f"{CODE}{line}\nx\n"


def test_lines_stream_out_before_the_answer_ends():
    """Once a line of the base has been seen, lines come out as soon as they are complete, blank ones with the
    next that is not; the closing fence never does."""
    reader = AnswerReader(CODE, "```", opened=True)
    assert reader.push("# new\n") == ""
    assert reader.push("def add(a, b):\n    ret") == "# new\ndef add(a, b):\n"
    assert reader.push("urn b + a\n\n\n") == "    return b + a\n"
    assert reader.push("print(add(1, 2))\n``") == "\n\nprint(add(1, 2))\n"
    assert reader.push("`\n") == ""
    assert reader.finish() == ""


def test_nothing_streams_out_behind_lines_left_out():
    """What follows a comment that stands for omitted lines may only seem to be behind them."""
    reader = AnswerReader(CODE, "```", opened=True)
    assert reader.push("def add(a, b):\n# ... existing code ...\nprint(add(1, 2))\n") == "def add(a, b):\n"
    with pytest.raises(EditError, match="part of the file"):
        reader.finish()


PIECES = st.sampled_from(
    ["a", "b", "c", "e = 1", "", "```\nq\n```", "```py\nr\n```", "````md\n```\n````", "~~~~", "    ```", "end"]
)
ADDED = st.lists(st.sampled_from(["x", "y", "a", "```\nn\n```", "```py\nm\n```"]), max_size=2)


# The examples are the same each time: answers contrived enough can still mislead the reader.
@settings(derandomize=True, max_examples=600, deadline=None)
@given(
    base=st.lists(PIECES, min_size=1, max_size=9),
    changes=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2), ADDED), max_size=2),
    form=st.sampled_from(["{}{fence}", "{}{fence}\nDone.\n", "{}```", "Here:\n```md\n{}```\nDone."]),
)
def test_edits_of_documents_are_never_misread(base, changes, form):
    """Random edits of random documents, in the forms models answer in, are read exactly or refused."""
    new = list(base)
    for at, removed, added in changes:
        new[at : at + removed] = added
    before, after = ("".join(f"{piece}\n" for piece in pieces) for pieces in (base, new))
    fence = fence_for(before, minimum=4)
    assume(after.strip())
    try:
        file = read_answer(form.format(after, fence=fence), before, fence, opened=True)
    except EditError:
        return
    assert file == after

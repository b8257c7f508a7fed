"""The edited file inside a model's answer.

An answer is read against the file it edits: which lines are the file's, which are talk around it, and which
fence is the wrapper all follow from the base text. Where two readings are possible the edit is refused, for a
refused edit costs a retry and a wrong reading costs the file.
"""

from __future__ import annotations

from lookup_spec.errors import EditError
from lookup_spec.text.evidence import Evidence
from lookup_spec.text.fences import Fence

_UNCLEAR = (
    "The file in the model's answer cannot be told from the text around it, so yours was left as it was; "
    "try again or put the instruction differently."
)
_PARTIAL = (
    "The model answered with a part of the file only, so yours was left as it was; try again or put the "
    "instruction differently."
)
_EMPTY = "The model's answer is empty, so the file was left as it was; try again."


def read_answer(answer: str, base: str, fence: str, *, opened: bool = False) -> str:
    """The edited file inside a model's answer; it ends with a newline if and only if the base does.

    Only the wrapper comes off: the fence that was asked for or, if the model chose another, the one around
    the whole file. Talk before and after it is dropped. Fences of the file itself stay.

    Args:
        answer: everything the model wrote; its line ends may be CRLF.
        base: the text of the file that is edited (LF line ends); empty for a new one.
        fence: the fence that the prompt asked the answer to use.
        opened: the prompt opened that fence already, so that the answer begins inside the file.

    Raises:
        EditError: the answer holds no file, only a part of one, or can be read in more than one way.
    """
    lines = answer.replace("\r\n", "\n").split("\n")
    if not lines[-1]:
        lines.pop()
    evidence = Evidence.of(base)
    files = {tuple(lines[start:end]) for start, end in evidence.readings(lines, Fence(fence), opened)}
    if all(map(evidence.is_empty, files or [[line for line in lines if not Fence.of(line)]])):
        raise EditError(_EMPTY)
    if len(files) != 1:
        raise EditError(_UNCLEAR)
    [file] = files
    if evidence.is_partial(file):
        raise EditError(_PARTIAL)
    text = "\n".join(file)
    if not _ends(base):
        return text.rstrip("\n")
    return text + "\n" if file else ""


class AnswerReader:
    """Reads an answer as it streams in; all its pieces joined are what :func:`read_answer` gives.

    Lines come out as soon as they are surely the file's: after a line of the base has been seen, and up to a
    fence that may be the closing one, which is so until another line of the base follows. None comes out behind a
    comment that stands for lines left out.

    Args:
        base: as for :func:`read_answer`.
        fence: likewise.
        opened: likewise.
    """

    def __init__(self, base: str, fence: str, *, opened: bool = False) -> None:
        self._base, self._fence, self._opened = base, fence, opened
        self._evidence = Evidence.of(base)
        self._lines: list[str] = []
        self._rest = ""
        self._sure = False
        self._wrapped = False
        self._ending = False
        self._omitted = False
        self._given = 0
        self._solid = 0

    @property
    def may_be_partial(self) -> bool:
        """Whether so little has come that the answer may turn out to be a part of the file."""
        return self._evidence.is_little(self._solid)

    def push(self, text: str) -> str:
        """Takes in more of the answer; returns what is now surely part of the edited file."""
        *complete, self._rest = (self._rest + text).split("\n")
        first = self._given
        for line in complete:
            self._lines.append(line.removesuffix("\r"))
            self._weigh(self._lines[-1])
        return self._joined(first, self._given)

    def finish(self) -> str:
        """The rest of the edited file.

        Raises:
            EditError: as for :func:`read_answer`; what was given so far must then not be applied.
        """
        answer = "\n".join([*self._lines, self._rest])
        file = read_answer(answer, self._base, self._fence, opened=self._opened)
        given = self._joined(0, self._given)
        if not file.startswith(given):
            raise EditError(_UNCLEAR)
        return file[len(given) :]

    def _weigh(self, line: str) -> None:
        """Decides how many lines are sure, now that this one has come."""
        fence = Fence.of(line)
        if fence is None and self._evidence.holds_any([line]):
            self._sure, self._ending = not self._wrapped, False
        elif fence is not None:
            self._wrapped = self._wrapped or not self._sure
            self._ending = self._ending or fence.bare
        self._omitted = self._omitted or self._evidence.omits(line)
        if self._sure and not self._ending and not self._omitted and line.strip():
            self._solid += 1
            self._given = len(self._lines)

    def _joined(self, start: int, end: int) -> str:
        text = "\n".join(self._lines[start:end])
        if _ends(self._base):
            return f"{text}\n" if start < end else ""
        return f"\n{text}" if 0 < start < end else text


def _ends(base: str) -> bool:
    """Whether an edited version ends with a newline: as the base does; a new file does."""
    return base.endswith("\n") or not base

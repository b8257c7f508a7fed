"""What stands around the base in the prompt, as a hint to how the answer begins and ends."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from lookup_spec.propose.prompt import Reference, Span
from lookup_spec.propose.retokenizer import Retokenizer

_NEAR = 24
_LAST_LINE = re.compile(r"(?:\A|\n)([^\n]+\n)\Z")
_LINE = re.compile(r"[^\s][^\n]+")
_LINES_AFTER = 2  # the first may be the rest of the base's last one


def framed(ids: Sequence[int], base: Span, retokenizer: Retokenizer | None) -> Reference:
    """The answer as it is expected if it repeats the base, in the frame that it has in the prompt.

    A frame is a line right before the base that begins with all of the line right behind it, as fences do:
    "```python" and "```". Both are tokenized anew, for in the prompt the last one may share a token with what
    follows, where an answer stops.

    Args:
        ids: the prompt.
        base: where the base stands in it. A token that holds its end may be left out.
        retokenizer: knows the tokenizer; None finds no frame.
    """
    text = tuple(ids[base.start : base.end])
    plain = Reference(text, "prediction")
    if retokenizer is None:
        return plain
    before = "".join(retokenizer.pieces(ids[max(0, base.start - _NEAR) : base.start]))
    after = "".join(retokenizer.pieces(ids[base.end : base.end + _NEAR]))
    opening = _LAST_LINE.search(before)
    if opening is None:
        return plain
    for line in islice(_LINE.finditer(after), _LINES_AFTER):
        mark = line[0].rstrip()
        if opening[1].startswith(mark):
            head = retokenizer.encode(opening[1])
            tail = retokenizer.encode(after[: line.start()] + mark)
            return Reference((*head, *text, *tail), "prediction", len(head))
    return plain

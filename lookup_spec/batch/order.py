"""An order of requests in which those that begin alike follow each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from lookup_spec.batch.request import BadLine, Request

_WINDOW = 256  # requests
_WINDOW_LETTERS = 32 << 20
_COMPARED = 4096  # characters


def alike_together(requests: Iterable[Request | BadLine]) -> Iterator[Request | BadLine]:
    """All of them, sorted by their text a few hundred at a time.

    What one has computed of a text is then still there when the next one begins with it.
    """
    rest = iter(requests)
    while window := list(_window(rest)):
        yield from sorted(window, key=_beginning)


def _window(requests: Iterator[Request | BadLine]) -> Iterator[Request | BadLine]:
    letters = 0
    for request in islice(requests, _WINDOW):
        yield request
        letters += len(str(request.body)) if isinstance(request, Request) else 0
        if letters > _WINDOW_LETTERS:
            return


def _beginning(request: Request | BadLine) -> str:
    if isinstance(request, BadLine):
        return ""
    body = request.body
    asked = body.get("text") or body.get("messages") or body.get("prompt") or ""
    return str(asked)[:_COMPARED]

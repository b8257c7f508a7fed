"""Where other libraries' habits end: progress bars on the terminal, messages of many lines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from transformers.utils import logging


@contextmanager
def without_progress_bars() -> Iterator[None]:
    """No bars of transformers inside; afterwards as before. Also a decorator."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def one_line(error: BaseException, limit: int = 300) -> str:
    """What a library's error says, on one line and not endless."""
    text = " ".join(str(error).split()).rstrip(".")
    return text[:limit] or type(error).__name__

"""Keeping the libraries' progress bars off the terminal while a model loads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from transformers.utils import logging


@contextmanager
def without_progress_bars() -> Iterator[None]:
    """No bars inside; afterwards as before. Also a decorator."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()

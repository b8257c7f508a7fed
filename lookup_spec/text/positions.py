"""Positions in a text, as editors count them."""

from __future__ import annotations

from typing import Literal

Encoding = Literal["utf-8", "utf-16", "utf-32"]
"""The unit that an editor counts characters in, as the Language Server Protocol names them."""

_CODECS: dict[Encoding, tuple[str, int]] = {
    "utf-8": ("utf-8", 1),
    "utf-16": ("utf-16-le", 2),
    "utf-32": ("utf-32-le", 4),
}


def column_of(line: str, units: int, encoding: Encoding) -> int:
    """How many characters (code points) of a line stand before a position; all, if the line is shorter.

    Args:
        line: without its end.
        units: what the editor counts before the position.
        encoding: in which units.

    Raises:
        ValueError: the position lies within a character.
    """
    codec, size = _CODECS[encoding]
    data = line.encode(codec, "surrogatepass")
    try:
        return len(data[: units * size].decode(codec, "surrogatepass" if encoding != "utf-16" else "strict"))
    except UnicodeDecodeError:
        raise ValueError(f"position {units} lies within a character") from None


def units_of(text: str, encoding: Encoding) -> int:
    """How many units an editor counts in a text.

    Args:
        text: a part of one line.
        encoding: of the units.
    """
    codec, size = _CODECS[encoding]
    return len(text.encode(codec, "surrogatepass")) // size

"""What replies call the model and its state."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from lookup_server.errors import ApiError
from lookup_spec import __version__
from lookup_spec.pipeline.engine import Engine


def named(name: str | None, names: Sequence[str]) -> str:
    """The name of the model that a caller means; no name means the default.

    Args:
        name: the caller's.
        names: what the model may be called, the default first.

    Raises:
        ApiError: there is no such model.
    """
    if not name:
        return names[0]
    if name in names:
        return name
    message = f"The model {name!r} does not exist; this server has {', '.join(names)}."
    raise ApiError(404, message, param="model", code="model_not_found")


def fingerprint(engine: Engine) -> str:
    """Changes when the same request may get another answer: with the model or the program."""
    return f"fp_{hashlib.sha256(f'{engine.model_name} {__version__}'.encode()).hexdigest()[:12]}"

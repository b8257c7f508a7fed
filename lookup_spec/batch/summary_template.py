"""The question that asks for a summary, which users may change."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from pathlib import Path

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from lookup_spec.errors import BatchError


def default_template() -> str:
    """The source of the template that comes along."""
    return files("lookup_spec.batch").joinpath("summary.jinja").read_text(encoding="utf-8")


class SummaryTemplate:
    """The question that asks for a summary.

    Args:
        source: a Jinja template; its variables are ``text``, ``name``, ``part`` and ``parts`` (from 1), and
            ``joining``, true if the text is made of summaries.

    Raises:
        BatchError: it is no template, or leaves the text out.
    """

    def __init__(self, source: str) -> None:
        environment = ImmutableSandboxedEnvironment(undefined=jinja2.StrictUndefined, keep_trailing_newline=False)
        try:
            self._template = environment.from_string(source)
        except jinja2.TemplateError as error:
            raise BatchError(f"The template cannot be read: {error}.") from error
        self._source = source
        self.digest = hashlib.sha256(source.encode()).hexdigest()[:16]
        for joining in (False, True):
            if "@text@" not in self.question("@text@", "name", joining=joining):
                raise BatchError("The template leaves the text out; write {{ text }} where it belongs.")

    def __reduce__(self) -> tuple[type[SummaryTemplate], tuple[str]]:
        """Copied to another process, it is made from its source again."""
        return type(self), (self._source,)

    @classmethod
    def read(cls, path: Path | None) -> SummaryTemplate:
        """The template in a file; None for the one that comes along.

        Raises:
            BatchError: there is none.
        """
        if path is None:
            return cls(default_template())
        try:
            return cls(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise BatchError(f"Cannot read {path}: {error}.") from error

    def question(self, text: str, name: str, part: int = 1, parts: int = 1, *, joining: bool = False) -> str:
        """What to ask about a text.

        Raises:
            BatchError: the template has a mistake in it.
        """
        try:
            return self._template.render(text=text, name=name, part=part, parts=parts, joining=joining)
        except jinja2.TemplateError as error:
            raise BatchError(f"The template cannot be filled in: {error}.") from error

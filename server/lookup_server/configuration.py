"""Settings put together from flags, the environment and a file, in this order of precedence."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lookup_server.settings import Settings
from lookup_spec.errors import LookupSpecError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PREFIX = "LOOKUP_SPEC_"

_NAMES = {field.alias or name: name for name, field in Settings.model_fields.items()}
_LISTS = {alias for alias, name in _NAMES.items() if isinstance(Settings.model_fields[name].default, tuple)}
_SECRET = {"api_key", "metrics_key"}
_ELSEWHERE = {"config", "cache"}  # of the environment: names the file; read by the model store


@dataclass(frozen=True, slots=True)
class _Given:
    value: Any
    origin: str  # as the user wrote it


def load_settings(flags: Mapping[str, Any], environment: Mapping[str, str], file: Path | None = None) -> Settings:
    """The settings of one run.

    Args:
        flags: values by the settings' names; None where a flag was not given.
        environment: ``LOOKUP_SPEC_`` and a setting's name in capitals; lists are separated by white space. An empty
            value counts as none.
        file: TOML with the settings at its top level; without one, ``LOOKUP_SPEC_CONFIG`` may name it.

    Raises:
        LookupSpecError: a value is wrong, or there is no such setting; the message says where it was given.
    """
    if file is None and (named := environment.get(f"{PREFIX}CONFIG")):
        file = Path(named).expanduser()
    given = {
        **({} if file is None else _from_file(file)),
        **_from_environment(environment),
        **{name: _Given(value, _flag(name)) for name, value in flags.items() if value is not None},
    }
    try:
        return Settings.model_validate({name: one.value for name, one in given.items()})
    except ValidationError as error:
        raise LookupSpecError(_complaint(error, given)) from None


def _from_environment(environment: Mapping[str, str]) -> dict[str, _Given]:
    given = {}
    for variable in sorted(environment):
        text = environment[variable].strip()
        name = variable.removeprefix(PREFIX).lower()
        if not variable.startswith(PREFIX) or not text or name in _ELSEWHERE:
            continue
        if name in _NAMES:
            given[name] = _Given(text.split() if name in _LISTS else text, variable)
        elif close := get_close_matches(name, _NAMES, n=1, cutoff=0.85):
            # Others are none of ours: Kubernetes makes such variables from a service's name.
            raise LookupSpecError(f"{variable} is not a setting; did you mean {PREFIX}{close[0].upper()}?")
    return given


def _from_file(file: Path) -> dict[str, _Given]:
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise LookupSpecError(f"The settings file {file} cannot be read ({error.strerror}).") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise LookupSpecError(f"The settings file {file} is not TOML: {error}.") from None
    for name in table:
        if name not in _NAMES:
            close = get_close_matches(name.replace("-", "_"), _NAMES, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(sorted(_NAMES))}."
            raise LookupSpecError(f"{name} in {file} is not a setting; {hint}")
    return {name: _Given(value, f"{name} in {file}") for name, value in table.items()}


def _complaint(error: ValidationError, given: Mapping[str, _Given]) -> str:
    first = error.errors(include_url=False)[0]
    name, *inside = map(str, first["loc"])
    one = given[next(alias for alias, attribute in _NAMES.items() if name in (alias, attribute))]
    shown = "" if name in _SECRET else f" is {one.value!r}"
    detail = f" ({'.'.join(inside)})" if inside else ""
    reason = first["msg"].removeprefix("Value error, ")
    return f"{one.origin}{shown}, which is wrong{detail}: {reason[:1].lower()}{reason[1:]}."


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")

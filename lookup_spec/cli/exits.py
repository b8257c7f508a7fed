"""Exit codes of the command, for scripts. 0 is success, 2 a wrong option, 130 an interrupt."""

from __future__ import annotations

from lookup_spec.errors import BusyJobError, LookupSpecError, OtherJobError, OutputError

FAILURE = 1
"""Anything foreseen that has no code of its own."""
SOME_FAILED = 3
"""A batch job came to its end, but not every line was answered."""
OUTPUT = 4
"""Results cannot be written: no space, no permission, a broken disk."""
OTHER_JOB = 5
"""The place of the results holds another job's."""
BUSY = 6
"""Another run is at work on the same results."""
SIGNAL = 128
"""Plus the number of the signal that ended the command."""


def exit_code(error: LookupSpecError) -> int:
    """The code for an error."""
    match error:
        case OutputError():
            return OUTPUT
        case OtherJobError():
            return OTHER_JOB
        case BusyJobError():
            return BUSY
        case _:
            return FAILURE

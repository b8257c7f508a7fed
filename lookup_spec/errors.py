"""Every error a user can cause or meet, as one small family.

A message says what was wrong, with what value, and what to do; it is shown as one line, never with a
traceback. Anything that is not a :class:`LookupSpecError` is a bug of ours.
"""

from __future__ import annotations


class LookupSpecError(Exception):
    """Base of all errors that are meant for the user's eyes."""


class ModelError(LookupSpecError):
    """A model is missing, corrupt, offline, or of a kind that cannot run here."""


class InvalidRequestError(LookupSpecError):
    """A request that can never be served as it stands.

    Args:
        message: one sentence for the user.
        param: the field that was wrong, if there is one.
    """

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


class ContextLengthError(InvalidRequestError):
    """The prompt alone fills, or overfills, the model's context.

    Args:
        prompt_tokens: length of the prompt, in tokens.
        context_length: the most tokens the model can hold.
        message: another sentence for the user.
    """

    def __init__(self, prompt_tokens: int, context_length: int, message: str | None = None) -> None:
        super().__init__(
            message
            or f"The prompt has {prompt_tokens} tokens, but this model holds {context_length} and needs room for "
            f"at least one more; shorten the prompt to {context_length - 1} tokens or fewer.",
            param="prompt",
        )
        self.prompt_tokens = prompt_tokens
        self.context_length = context_length


class GrammarError(LookupSpecError):
    """An answer whose grammar became too complex to be followed on; what came before it is right."""


class EditError(LookupSpecError):
    """An edit whose result cannot safely replace the file; the file was left as it was."""


class BatchError(LookupSpecError):
    """A batch job that cannot begin or go on; results that were written stay."""


class OtherJobError(BatchError):
    """The place of the results holds those of another job."""


class BusyJobError(BatchError):
    """Another run is at work on the same results."""


class OutputError(BatchError):
    """Results can no longer be written."""

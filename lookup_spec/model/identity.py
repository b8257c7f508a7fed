"""What tells a model from every other, in a few letters."""

from __future__ import annotations

import hashlib

from lookup_spec.model.load import LoadedModel

_SAMPLES = 16  # numbers of each tensor: training moves them all


def identity(loaded: LoadedModel) -> str:
    """16 hexadecimal digits that change with the weights, their type, the tokenizer and the chat template.

    To be asked before an engine takes the model, which may lay out its weights anew.

    Args:
        loaded: the model.
    """
    digest = hashlib.blake2b(digest_size=8)
    for name, weight in sorted(loaded.model.named_parameters()):
        numbers = weight.detach().reshape(-1)
        sample = numbers[:: max(len(numbers) // _SAMPLES, 1)][:_SAMPLES]
        digest.update(f"{name} {tuple(weight.shape)} {weight.dtype} {sample.float().tolist()}\n".encode())
    digest.update(loaded.tokenizer.backend_tokenizer.to_str().encode())
    digest.update(str(loaded.tokenizer.chat_template).encode())
    return digest.hexdigest()

"""The likeliest tokens of many rows of logits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor


def runner_ups(logits: Tensor, count: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The likeliest tokens of each row and their probabilities, best first.

    Args:
        logits: ``[rows, vocab]`` float32.
        count: how many of each row; no more than there are.

    Returns:
        Ids and probabilities, both ``[rows, count]``.
    """
    scores, ids = logits.topk(min(count, logits.shape[-1]), dim=-1)
    # The sum over the whole row is all that a softmax needs of the other tokens.
    probabilities = (scores - logits.logsumexp(dim=-1, keepdim=True)).exp()
    return ids.cpu().numpy(), probabilities.cpu().numpy()

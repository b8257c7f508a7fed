"""Settings for tests that run tiny models."""

from __future__ import annotations

import torch

torch.set_num_threads(1)  # matrices this small only lose by being shared out

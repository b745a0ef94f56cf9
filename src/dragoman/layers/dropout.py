"""Dropout, with its randomness given."""

from __future__ import annotations

import torch
from torch import Generator, Tensor


def dropout(x: Tensor, rate: float, noise: Generator | None) -> Tensor:
    """x with this share of its elements set to 0 and the others scaled up to make good; without noise, x itself."""
    if noise is None or rate == 0.0:
        return x
    kept = torch.empty_like(x).bernoulli_(1.0 - rate, generator=noise)
    return x * kept.div_(1.0 - rate)

"""Dropout with an explicit random generator."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Generator, Tensor, nn

STEPS = 1 << 16  # dropout rates are rounded to multiples of 1 / STEPS
NUMBERS_PER_DRAW = 4  # 16-bit numbers in one 64-bit draw


class Dropout(nn.Module):
    """Set a share of the elements to zero in training and scale up the others.

    Args:
        rate: Share of elements set to zero.
        shared_dim: Drop the same elements at all positions of this dimension (variational dropout, Gal and
            Ghahramani 2016).
    """

    def __init__(self, rate: float, shared_dim: int | None = None):
        super().__init__()
        self.rate, self.shared_dim = rate, shared_dim

    def forward(self, x: Tensor, generator: Generator | None = None) -> Tensor:
        """Drop elements of x; without a generator, torch's default one is used. The identity outside training."""
        if not self.training or self.rate == 0.0:
            return x
        shape = [1 if dim == self.shared_dim else size for dim, size in enumerate(x.shape)]
        retained = min(max(1, round((1.0 - self.rate) * STEPS)), STEPS - 1)  # of the STEPS 16-bit numbers
        mask = _random_int16(shape, generator, x.device) < retained - STEPS // 2
        return x * mask.to(x.dtype).mul_(STEPS / retained)

    def extra_repr(self) -> str:
        return f"{self.rate}" if self.shared_dim is None else f"{self.rate}, shared_dim={self.shared_dim}"


def _random_int16(shape: Sequence[int], generator: Generator | None, device: torch.device) -> Tensor:
    """Return uniform 16-bit numbers. Drawing four at once takes a quarter of the time."""
    size = math.prod(shape)
    bits = torch.empty(-(-size // NUMBERS_PER_DRAW), dtype=torch.int64, device=device)
    bits.random_(torch.iinfo(torch.int64).min, None, generator=generator)
    return bits.view(torch.int16)[:size].view(*shape)


def default_generator(device: torch.device) -> Generator:
    """Return torch's default generator of a device."""
    return torch.cuda.default_generators[device.index or 0] if device.type == "cuda" else torch.default_generator

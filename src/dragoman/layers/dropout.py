"""Dropout, with its randomness given."""

from __future__ import annotations

from torch import Generator, Tensor


def dropout(x: Tensor, rate: float, noise: Generator | None, alike_in: int | None = None) -> Tensor:
    """x with this share of its elements set to 0 and the others scaled up to make good; without noise, x itself.

    With `alike_in`, the same elements are left out all along that dimension (Gal and Ghahramani 2016).
    """
    if noise is None or rate == 0.0:
        return x
    shape = [1 if place == alike_in else size for place, size in enumerate(x.shape)]
    kept = x.new_empty(shape).bernoulli_(1.0 - rate, generator=noise)
    return x * kept.div_(1.0 - rate)

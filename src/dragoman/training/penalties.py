"""L1 and L2: weights pay for being large, so that what chance alone suggests is not believed."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor


def add_gradients(weights: Iterable[Tensor], l1: float, l2: float) -> None:
    """Add to the gradients those of l1 * |w| + l2 * w^2 / 2.

    At w = 0, where |w| has no gradient, a weight stays unless the loss pulls harder than the penalty.
    """
    for weight in weights:
        if weight.grad is None:
            continue
        if l2:
            weight.grad.add_(weight.detach(), alpha=l2)
        if l1:
            at_zero = weight.detach() == 0
            shrunk = torch.nn.functional.softshrink(weight.grad, l1)
            torch.where(at_zero, shrunk, weight.grad.add(weight.detach().sign(), alpha=l1), out=weight.grad)


def signs(weights: Iterable[Tensor]) -> list[Tensor]:
    """On which side of 0 weights are before a step."""
    return [weight.detach().sign() for weight in weights]


def stop_at_zero(weights: Iterable[Tensor], before: Iterable[Tensor]) -> None:
    """Weights that a step has carried across 0 stop there: so L1 leaves true zeros."""
    with torch.no_grad():
        for weight, sign in zip(weights, before, strict=True):
            weight.masked_fill_(weight.sign() * sign < 0, 0.0)

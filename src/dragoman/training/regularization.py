"""L1 and L2: weights pay for being large, so that what chance alone suggests is not believed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from dragoman.core.errors import DataError
from dragoman.core.kernels import kernel

SignConstraint = NDArray[np.int8]  # on which side of 0 each weight must stay: 1, -1, or 0 for either


def add_penalty_gradients(weights: Iterable[Tensor], l1: float, l2: float) -> list[SignConstraint]:
    """Add to the gradients those of l1 * |w| + l2 * w^2 / 2; on which side of 0 weights are to stay.

    At w = 0, where |w| has no gradient, a weight stays unless the loss pulls harder than the penalty. Elsewhere, it may
    cross 0 only if the loss pulls harder than the penalty: the penalty alone brings it to 0 and no further.
    """
    held = []
    for weight in weights:
        if l2 and weight.grad is not None:
            weight.grad.add_(weight.detach(), alpha=l2)
        if l1:
            held.append(np.zeros(weight.numel(), np.int8))
            if weight.grad is not None:  # nothing flows through a step function
                _add_l1(_flat(weight), _flat(weight.grad), l1, held[-1])
    return held


def clip_at_zero(weights: Iterable[Tensor], held: Sequence[SignConstraint]) -> None:
    """Weights that a step has carried to the side where they must not be stop at 0: so L1 leaves true zeros."""
    if held:
        for weight, sides in zip(weights, held, strict=True):
            _stop(_flat(weight), sides)


def _flat(tensor: Tensor) -> NDArray[Any]:
    """The same memory as an array."""
    if tensor.device.type != "cpu":
        raise DataError(f"an L1 penalty needs weights on the processor, not {tensor.device.type}; use --l2")
    return tensor.detach().view(-1).numpy()


@kernel
def _add_l1(weight: Any, gradient: Any, l1: float, held: Any) -> None:
    for i in range(weight.size):
        pull = gradient[i]
        if weight[i] == 0.0:
            gradient[i] = max(pull - l1, 0.0) + min(pull + l1, 0.0)
        else:
            side = 1 if weight[i] > 0.0 else -1
            gradient[i] = pull + l1 * side
            if abs(pull) <= l1:
                held[i] = side


@kernel
def _stop(weight: Any, held: Any) -> None:
    for i in range(weight.size):
        if weight[i] * held[i] < 0.0:
            weight[i] = 0.0

"""Activation functions."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from dragoman.nn.products import GradientContext


def step(x: Tensor) -> Tensor:
    """Return 1 where x > 0 and -1 elsewhere. The gradient is 0, so nothing is learned through it."""
    return torch.where(x > 0, 1.0, -1.0).to(x.dtype)


def tanh(x: Tensor) -> Tensor:
    """tanh(x) = 2 sigmoid(2 x) - 1: on a CPU, torch computes sigmoid nine times as fast as tanh.

    The absolute error is that of rounding near one. Numbers in bfloat16 are converted to float32.
    """
    x = x.float() if x.dtype == torch.bfloat16 else x
    if x.device.type != "cpu" or x.dtype != torch.float32:
        return torch.tanh(x)
    if not (x.requires_grad and torch.is_grad_enabled()):
        return tanh_(2 * x, doubled=True)
    result: Tensor = _Tanh.apply(x)  # type: ignore[no-untyped-call]
    return result


def tanh_(x: Tensor, *, doubled: bool = False) -> Tensor:
    """Replace the numbers of a tensor by their tanh, or by the tanh of their halves."""
    if x.device.type != "cpu" or x.dtype != torch.float32:
        return (x.div_(2) if doubled else x).tanh_()
    return (x if doubled else x.mul_(2)).sigmoid_().mul_(2).sub_(1)


class _Tanh(torch.autograd.Function):
    """tanh, with its gradient from the result: 1 - tanh^2."""

    @staticmethod
    def forward(ctx: GradientContext, x: Tensor) -> Tensor:
        y = tanh_(2 * x, doubled=True)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: GradientContext, *gradients: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return torch.ops.aten.tanh_backward(gradients[0], y)


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"step": step, "tanh": tanh, "relu": torch.relu}

"""Multi-layer perceptrons: affine transforms with something non-linear in between."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def step(x: Tensor) -> Tensor:
    """1 where x > 0, -1 elsewhere. Its gradient is 0 wherever it has one, so nothing is learned through it."""
    return torch.where(x > 0, 1.0, -1.0).to(x.dtype)


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"step": step, "tanh": torch.tanh, "relu": torch.relu}


def affine(x: Tensor, W: Tensor, b: Tensor) -> Tensor:
    """W x + b.  # (..., inputs) -> (..., outputs)"""
    return torch.nn.functional.linear(x, W, b)


def hidden(x: Tensor, W: Tensor, b: Tensor, activation: Callable[[Tensor], Tensor]) -> Tensor:
    """h = tanh(W_xh x + b_h), or another function in place of tanh (eq. nnlm:stepmlp, nnlm:forward)."""
    return activation(affine(x, W, b))

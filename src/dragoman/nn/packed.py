"""Matrices that are prepared once for many products with few rows, as in search.

torch's default library multiplies five rows several times slower than oneDNN does with a matrix that was reordered
before. torch has no public function for this, so the functions of `torch.compile` are used where they exist, and
ordinary products elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.nn import functional

from dragoman.nn.step_products import StepProducts

Matrix = Callable[[Tensor], Tensor]  # x -> W x + b  # (rows, inputs) -> (rows, outputs)
PackMatrix = Callable[[Tensor, Tensor | None], Matrix]  # W, b -> a prepared matrix

TYPICAL_ROWS = 16  # for which matrices are reordered


def can_pack(W: Tensor) -> bool:
    """Return whether oneDNN can multiply by this matrix after reordering it."""
    has_functions = hasattr(torch.ops.mkldnn, "_reorder_linear_weight") and torch.backends.mkldnn.is_available()
    return has_functions and W.device.type == "cpu" and W.dtype == torch.float32


def pack_float32(W: Tensor, b: Tensor | None = None) -> Matrix:
    """Prepare a matrix without changing it."""
    W, b = W.detach(), None if b is None else b.detach()
    if not can_pack(W):
        return lambda x: functional.linear(x, W, b)
    packed, multiply = torch.ops.mkldnn._reorder_linear_weight(W, TYPICAL_ROWS), torch.ops.mkldnn._linear_pointwise
    return lambda x: multiply(x, packed, b, "none", [], "")


class PackedProducts(StepProducts):
    """Products with prepared matrices, by their names."""

    def __init__(self, matrices: Mapping[str, Matrix]):
        self._matrices = dict(matrices)

    def add(self, name: str, W: Tensor, p: Tensor, x: Tensor) -> Tensor:
        return p + self._matrices[name](x)

    def linear(self, name: str, W: Tensor, x: Tensor) -> Tensor:
        return self._matrices[name](x)

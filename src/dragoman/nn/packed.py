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
MIN_SIZE = 1 << 19  # multiplications in a product, below which oneDNN's overhead outweighs its speed


def can_pack(W: Tensor) -> bool:
    """Return whether oneDNN can multiply by this matrix after reordering it."""
    has_functions = hasattr(torch.ops.mkldnn, "_reorder_linear_weight") and torch.backends.mkldnn.is_available()
    return has_functions and W.device.type == "cpu" and W.dtype == torch.float32


def pack_float32(W: Tensor, b: Tensor | None = None) -> Matrix:
    """Prepare a matrix without changing it."""
    W, b = W.detach(), None if b is None else b.detach().contiguous()
    if not can_pack(W):
        return lambda x: functional.linear(x, W, b)
    packed, multiply = torch.ops.mkldnn._reorder_linear_weight(W, TYPICAL_ROWS), torch.ops.mkldnn._linear_pointwise

    def product(x: Tensor) -> Tensor:
        rows = len(x)
        if rows * W.numel() < MIN_SIZE:
            return functional.linear(x, W, b)
        x = functional.pad(x, (0, 0, 0, rounded_rows(rows) - rows))
        y: Tensor = multiply(x, packed, b, "none", [], "")
        return y[:rows]

    return product


def rounded_rows(rows: int) -> int:
    """Round a number of rows up, by an eighth at most.

    For each number of rows, oneDNN compiles functions that take half a megabyte. Search has all numbers up to the
    number of hypotheses of a batch.

    >>> [rounded_rows(rows) for rows in (1, 15, 17, 31, 33, 320)]
    [1, 15, 18, 32, 36, 320]
    """
    step = 1 << max(0, rows.bit_length() - 4)
    return -(-rows // step) * step


class PackedProducts(StepProducts):
    """Products with prepared matrices, by their names."""

    def __init__(self, matrices: Mapping[str, Matrix]):
        self._matrices = dict(matrices)

    def add(self, name: str, W: Tensor, p: Tensor, x: Tensor) -> Tensor:
        return p + self._matrices[name](x)

    def linear(self, name: str, W: Tensor, x: Tensor) -> Tensor:
        return self._matrices[name](x)

"""The fastest product of two matrices that torch has, as the limit of what a processor can do.

torch has two libraries for float32: MKL, its default, and oneDNN. Which one is faster depends on the processor, so it is
measured once per process. Products with operands of bfloat16 use oneDNN already.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from time import perf_counter

import torch
from torch import Tensor

SHAPE = 64, 512, 2048  # rows, inputs, outputs of the measured product
MIN_SIZE = 1 << 20  # multiplications, below which oneDNN's overhead outweighs its speed
ROUNDS = 10


def multiply_by_onednn(A: Tensor, B: Tensor) -> Tensor:
    product: Tensor = torch.ops.mkldnn._linear_pointwise(A, B.t(), None, "none", [], "")
    return product


def seconds(multiply: Callable[[Tensor, Tensor], Tensor], A: Tensor, B: Tensor) -> float:
    """Return the shortest time of a product."""
    times = []
    for _ in range(ROUNDS):
        start = perf_counter()
        multiply(A, B)
        times.append(perf_counter() - start)
    return min(times)


@cache
def onednn_is_faster() -> bool:
    if not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return False
    rows, inputs, outputs = SHAPE
    A, B = torch.randn(rows, inputs), torch.randn(outputs, inputs).t()
    return seconds(multiply_by_onednn, A, B) < seconds(torch.matmul, A, B)


def multiply(A: Tensor, B: Tensor) -> Tensor:
    """Return A B.  # (rows, inner), (inner, columns) -> (rows, columns)"""
    is_large = A.numel() * B.shape[1] >= MIN_SIZE
    use_onednn = A.dtype == torch.float32 and is_large and onednn_is_faster()
    return multiply_by_onednn(A, B) if use_onednn else A @ B

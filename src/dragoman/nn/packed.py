"""Matrices that are prepared once for many products with few rows, as in search.

torch's default library multiplies five rows several times slower than oneDNN does with a matrix that was reordered
before. torch has no public function for this, so the functions of `torch.compile` are used where they exist, and
ordinary products elsewhere. `Int8Matrix` has weights of 8 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.nn import functional

from dragoman.nn.step_products import StepProducts

Matrix = Callable[[Tensor], Tensor]  # x -> W x + b  # (rows, inputs) -> (rows, outputs)
PackMatrix = Callable[[Tensor, Tensor | None], Matrix]  # W, b -> a prepared matrix

INT8_LIMIT = 127  # of the absolute values of quantized numbers
ZERO_POINT = 128  # what 0 is as an unsigned number of 8 bits
MIN_SCALE = 1e-30  # so that a row of zeros has one
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


class Int8Matrix:
    """A matrix with 8-bit weights and one scale per row of W, for inputs that are rounded to 8 bits as well.

    Each row of inputs has its own scale, so the result of a row does not depend on other rows. Products are added up
    exactly, as integers.
    """

    def __init__(self, W: Tensor, b: Tensor | None = None):
        self.bias = None if b is None else b.detach()
        self._multiply = _int8_product(*quantize_rows(W.detach()))

    def __call__(self, x: Tensor) -> Tensor:
        scale = x.abs().amax(dim=1, keepdim=True).div_(INT8_LIMIT).clamp_(min=MIN_SCALE)  # (rows, 1)
        y = self._multiply((x / scale).round_().add_(ZERO_POINT).to(torch.uint8)) * scale  # (rows, outputs)
        return y if self.bias is None else y.add_(self.bias)


def quantize_rows(W: Tensor) -> tuple[Tensor, Tensor]:
    """Return a matrix in 8 bits, and the scale of each row.  # (outputs, inputs) -> the same, (outputs,)"""
    scale = W.abs().amax(dim=1).float().div(INT8_LIMIT).clamp(min=MIN_SCALE)
    return (W / scale[:, None]).round().clamp(-INT8_LIMIT, INT8_LIMIT).to(torch.int8), scale


def dequantize_rows(quantized: Tensor, scale: Tensor) -> Tensor:
    """Return the matrix that `quantize_rows` has rounded."""
    return quantized.float() * scale[:, None]


def _int8_product(W: Tensor, scale: Tensor) -> Matrix:
    """Return x -> scale * (W (x - ZERO_POINT)) for inputs of unsigned 8 bits."""
    outputs, inputs = W.shape
    if has_int8_products():
        packed = torch.ops.onednn.qlinear_prepack(W, [TYPICAL_ROWS, inputs])
        zero_points = torch.zeros(outputs, dtype=torch.int64)
        multiply = torch.ops.onednn.qlinear_pointwise
        return lambda x: multiply(
            x, 1.0, ZERO_POINT, packed, scale, zero_points, None, 1.0, 0, torch.float32, "none", [], ""
        )
    exact = W.double()  # sums of integers are exact in 64 bits
    return lambda x: ((x.double() - ZERO_POINT) @ exact.t()).float() * scale


def has_int8_products() -> bool:
    """Return whether oneDNN and the processor multiply numbers of 8 bits and add up the products without overflow."""
    has_functions = hasattr(torch.ops.onednn, "qlinear_prepack") and torch.backends.mkldnn.is_available()
    capabilities = torch.cpu.get_capabilities()
    return has_functions and any(capabilities.get(name, False) for name in ("avx512_vnni", "avx_vnni", "amx_int8"))


class PackedProducts(StepProducts):
    """Products with prepared matrices, by their names."""

    def __init__(self, matrices: Mapping[str, Matrix]):
        self._matrices = dict(matrices)

    def add(self, name: str, W: Tensor, p: Tensor, x: Tensor) -> Tensor:
        return p + self._matrices[name](x)

    def linear(self, name: str, W: Tensor, x: Tensor) -> Tensor:
        return self._matrices[name](x)

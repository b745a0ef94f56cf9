"""Matrices of 8-bit integers, with a scale for each row, in place of those of a trained model.

`Int8Tensor` is a matrix that layers use like any other. A product with it rounds its inputs to 8 bits as well; every
other function gets the matrix in floating point, which exists only during the call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils._pytree import tree_map

from dragoman.core.processor import cpu_capabilities
from dragoman.nn.packed import TYPICAL_ROWS, rounded_rows

INT8_LIMIT = 127  # of the absolute values of quantized numbers
ZERO_POINT = 128  # what 0 is as an unsigned number of 8 bits
MIN_SCALE = 1e-30  # so that a row of zeros has one
EXACT_INPUTS = 1024  # as many products of 8-bit numbers have a sum that is exact in 32 bits
FAST_INSTRUCTIONS = ("avx512_vnni", "avx_vnni", "amx_int8")


def quantize_rows(W: Tensor) -> tuple[Tensor, Tensor]:
    """Return a matrix in 8 bits, and the scale of each row.  # (outputs, inputs) -> the same, (outputs,)"""
    scale = W.abs().amax(dim=1).float().div(INT8_LIMIT).clamp(min=MIN_SCALE)
    return (W / scale[:, None]).round().clamp(-INT8_LIMIT, INT8_LIMIT).to(torch.int8), scale


def dequantize_rows(quantized: Tensor, scale: Tensor) -> Tensor:
    """Return the matrix that `quantize_rows` has rounded."""
    return quantized.float() * scale[:, None]


def has_int8_products() -> bool:
    """Return whether oneDNN and the processor multiply numbers of 8 bits and add up the products without overflow."""
    has_functions = hasattr(torch.ops.onednn, "qlinear_prepack") and torch.backends.mkldnn.is_available()
    capabilities = cpu_capabilities()
    return has_functions and any(capabilities.get(name, False) for name in FAST_INSTRUCTIONS) and adds_exactly()


@cache
def adds_exactly() -> bool:
    """Return whether oneDNN adds up the largest products exactly.

    It may use older instructions than the processor has (ONEDNN_MAX_CPU_ISA), which add up in 16 bits.
    """
    W = torch.full((TYPICAL_ROWS, EXACT_INPUTS), INT8_LIMIT, dtype=torch.int8)
    x = torch.full((TYPICAL_ROWS, EXACT_INPUTS), 255, dtype=torch.uint8)
    y = _multiply(x, _pack(W), torch.ones(TYPICAL_ROWS), torch.zeros(TYPICAL_ROWS, dtype=torch.int64))
    return bool((y == INT8_LIMIT * (255 - ZERO_POINT) * EXACT_INPUTS).all())


def _pack(quantized: Tensor) -> Tensor:
    packed: Tensor = torch.ops.onednn.qlinear_prepack(quantized, [TYPICAL_ROWS, quantized.shape[1]])
    return packed


def _multiply(x: Tensor, packed: Tensor, scale: Tensor, zero_points: Tensor) -> Tensor:
    y: Tensor = torch.ops.onednn.qlinear_pointwise(
        x, 1.0, ZERO_POINT, packed, scale, zero_points, None, 1.0, 0, torch.float32, "none", [], ""
    )
    return y


class Int8Product:
    """x -> scale * (W (x - ZERO_POINT)) for inputs of unsigned 8 bits. Sums are exact."""

    def __init__(self, quantized: Tensor, scale: Tensor):
        self.scale, self._packed = scale, None
        if has_int8_products():
            self._packed = _pack(quantized)
            self._zero_points = torch.zeros(len(quantized), dtype=torch.int64)
        else:
            self._parts = quantized.t().float().split(EXACT_INPUTS)  # (inputs, outputs) in all

    def __call__(self, x: Tensor) -> Tensor:
        """# (rows, inputs) -> (rows, outputs)"""
        if self._packed is None:
            parts = (x.float() - ZERO_POINT).split(EXACT_INPUTS, dim=1)
            sums = [part @ W for part, W in zip(parts, self._parts, strict=True)]  # (rows, outputs) each
            total = sums[0] if len(sums) == 1 else torch.stack(sums).sum(dim=0, dtype=torch.float64).float()
            return total * self.scale
        rows, zero_points = len(x), self._zero_points
        x = functional.pad(x, (0, 0, 0, rounded_rows(rows) - rows))
        return _multiply(x, self._packed, self.scale, zero_points)[:rows]

    def quantized(self) -> Tensor:
        """Return the matrix again.  # (outputs, inputs)"""
        W = torch.cat(self._parts).to(torch.int8) if self._packed is None else self._packed.to_dense()
        return W.t().contiguous()


class Int8Matrix:
    """A matrix with 8-bit weights and one scale per row of W, for inputs that are rounded to 8 bits as well.

    Each row of inputs has its own scale, so the result of a row does not depend on other rows. Products are added up
    exactly, as integers.
    """

    def __init__(self, W: Tensor, b: Tensor | None = None):
        self.bias = None if b is None else b.detach()
        self._multiply = W.product if isinstance(W, Int8Tensor) else Int8Product(*quantize_rows(W.detach()))

    def __call__(self, x: Tensor) -> Tensor:
        """# (rows, inputs) -> (rows, outputs)"""
        scale = x.abs().amax(dim=1, keepdim=True).div_(INT8_LIMIT).clamp_(min=MIN_SCALE)  # (rows, 1)
        y = self._multiply((x / scale).round_().add_(ZERO_POINT).to(torch.uint8)) * scale  # (rows, outputs)
        return y if self.bias is None else y.add_(self.bias)


class Int8Tensor(Tensor):
    """A matrix of 8-bit integers and scales that stands for a matrix of floating-point numbers.

    Rows are what an embedding selects, so an embedding `keeps_rows`. Other matrices are reordered for products when
    the first is computed, and then exist only in that order.
    """

    scale: Tensor  # (outputs,)
    keeps_rows: bool

    @staticmethod
    def __new__(
        cls, quantized: Tensor, scale: Tensor, dtype: torch.dtype = torch.float32, *, keeps_rows: bool = False
    ) -> Int8Tensor:
        placeholder = torch.full((), torch.nan, dtype=dtype).expand(quantized.shape)  # needs no memory
        return torch.Tensor._make_subclass(cls, placeholder)

    def __init__(
        self, quantized: Tensor, scale: Tensor, dtype: torch.dtype = torch.float32, *, keeps_rows: bool = False
    ):
        self.scale, self.keeps_rows = scale, keeps_rows
        self._rows: Tensor | None = quantized
        self._product: Int8Product | None = None
        self._parts: tuple[tuple[int, ...], tuple[Int8Tensor, ...]] = (), ()  # their numbers of rows, and the parts

    @property
    def product(self) -> Int8Product:
        if self._product is None:
            self._product = Int8Product(self.quantized, self.scale)
            self._rows = self._rows if self.keeps_rows else None
        return self._product

    @property
    def quantized(self) -> Tensor:
        """The integers.  # (outputs, inputs)"""
        rows, (_, parts) = self._rows, self._parts  # another thread may reorder the matrix meanwhile
        if rows is not None:
            return rows
        return torch.cat([part.quantized for part in parts]) if parts else self.product.quantized()

    def dequantized(self) -> Tensor:
        return dequantize_rows(self.quantized, self.scale).to(self.dtype)

    def rows(self, indices: Tensor) -> Tensor:
        """Return rows in floating point.  # (...) -> (..., inputs)"""
        flat = indices.flatten()
        rows = self.quantized.index_select(0, flat).to(self.dtype).mul_(self.scale.index_select(0, flat)[:, None])
        return rows.unflatten(0, indices.shape) if indices.dim() != 1 else rows

    def subset(self, indices: Tensor) -> Int8Tensor:
        """# (n,) -> (n, inputs)"""
        return Int8Tensor(self.quantized[indices], self.scale[indices], self.dtype)

    def parts(self, sizes: tuple[int, ...]) -> tuple[Int8Tensor, ...]:
        """Return the matrix in parts of these numbers of rows. They are computed once."""
        known_sizes, parts = self._parts
        if sizes != known_sizes:
            pairs = zip(self.quantized.split(sizes), self.scale.split(sizes), strict=True)
            parts = tuple(Int8Tensor(quantized.clone(), scale, self.dtype) for quantized, scale in pairs)
            self._parts = sizes, parts
            self._rows = self._rows if self.keeps_rows else None
        return parts

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # it does not change

    def __reduce_ex__(self, protocol: object) -> tuple[Callable[..., Int8Tensor], tuple[Any, ...]]:
        return _restore, (self.quantized, self.scale, self.dtype, self.keeps_rows)

    def __repr__(self, **options: object) -> str:  # type: ignore[override]
        return f"Int8Tensor(shape={tuple(self.shape)})"

    @classmethod
    def __torch_function__(
        cls, function: Any, types: object, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if function in FUNCTIONS:
            return FUNCTIONS[function](*args, **kwargs)
        with torch._C.DisableTorchFunctionSubclass():
            if function not in GETTERS and function.__name__ not in METADATA:
                args, kwargs = tree_map(to_float, (tuple(args), dict(kwargs)))
            return function(*args, **kwargs)


class _Transposed:
    """The transpose of a matrix, as the second factor of products."""

    def __init__(self, W: Int8Tensor):
        self.W = W

    @classmethod
    def __torch_function__(
        cls, function: Any, types: object, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if function in PRODUCTS and isinstance(args[-1], cls) and not kwargs:
            *p, x, W = args
            y = linear(x, W.W)
            return p[0] + y if p else y
        floats = [to_float(part.W).t() if isinstance(part, cls) else part for part in args]
        return function(*floats, **(kwargs or {}))


def _restore(quantized: Tensor, scale: Tensor, dtype: torch.dtype, keeps_rows: bool) -> Int8Tensor:
    tensor = Int8Tensor(quantized, scale, dtype, keeps_rows=keeps_rows)
    tensor._is_param = True  # as `nn.Parameter` marks tensors of other classes
    return tensor


def to_float(value: Any) -> Any:
    """Return a matrix in floating point, and any other value as it is."""
    return value.dequantized() if isinstance(value, Int8Tensor) else value


def linear(x: Tensor, W: Tensor, b: Tensor | None = None) -> Tensor:
    """Return W x + b.  # x: (..., inputs), W: (outputs, inputs), b: (outputs,) -> (..., outputs)"""
    x = to_float(x)
    if not isinstance(W, Int8Tensor):
        return functional.linear(x, W, b)
    return Int8Matrix(W, b)(x.reshape(-1, x.shape[-1])).reshape(*x.shape[:-1], -1)


def _embedding(ids: Tensor, W: Int8Tensor, *options: object, **named: object) -> Tensor:
    return W.rows(ids)


def _index_select(W: Int8Tensor, dim: int, indices: Tensor) -> Tensor:
    return W.subset(indices) if dim == 0 else W.dequantized().index_select(dim, indices)


def _getitem(W: Int8Tensor, indices: Any) -> Tensor:
    is_rows = isinstance(indices, Tensor) and indices.dim() == 1 and indices.dtype == torch.int64
    return W.subset(indices) if is_rows else W.dequantized()[indices]


def _split(W: Int8Tensor, sizes: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    if isinstance(sizes, int) or dim != 0:
        return W.dequantized().split(sizes, dim)
    return W.parts(tuple(sizes))


PRODUCTS = (torch.addmm, torch.mm, torch.matmul, Tensor.matmul, Tensor.__matmul__)
# What a matrix of floating-point numbers would return as well.
METADATA = ("__set__", "__len__", "dim", "is_floating_point", "new_zeros", "numel", "requires_grad_", "size")
ATTRIBUTES = ("shape", "dtype", "device", "ndim", "layout", "requires_grad", "is_leaf", "grad", "grad_fn")
GETTERS = {getattr(Tensor, name).__get__ for name in ATTRIBUTES}
FUNCTIONS: dict[Any, Callable[..., Any]] = {
    functional.linear: linear,
    functional.embedding: _embedding,
    Tensor.t: _Transposed,
    Tensor.split: _split,
    Tensor.index_select: _index_select,
    Tensor.__getitem__: _getitem,
    Tensor.detach: lambda W: W,
}


def quantize_parameters(model: nn.Module, matrices: Mapping[str, tuple[Tensor, Tensor]]) -> None:
    """Replace matrices of a model, which are given in 8 bits with their scales by the names of the parameters."""
    for name, (quantized, scale) in matrices.items():
        path, _, leaf = name.rpartition(".")
        module = model.get_submodule(path)
        is_embedding = isinstance(module, nn.Embedding)
        tensor = Int8Tensor(quantized, scale, getattr(module, leaf).dtype, keeps_rows=is_embedding)
        setattr(module, leaf, nn.Parameter(tensor, requires_grad=False))

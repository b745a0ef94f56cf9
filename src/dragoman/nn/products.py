"""Matrix products in float32, by the faster of torch's two libraries for this processor.

torch multiplies matrices of float32 with MKL, which does not use the AVX-512 instructions of processors that Intel did
not make. oneDNN, which torch uses for bfloat16, does: there its products are about twice as fast.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor
from torch.autograd.function import Function, FunctionCtx, once_differentiable
from torch.nn import functional
from torch.overrides import has_torch_function

from dragoman.core.processor import cpu_capabilities

MIN_SIZE = 1 << 20  # multiplications in a product, below which oneDNN's overhead of 10 microseconds is not worth it
MIN_INNER = 256  # terms of each sum, below which copying takes longer than oneDNN saves


class GradientContext(FunctionCtx):
    """What the functions of this package save for their backward pass."""

    saved_tensors: tuple[Tensor, ...]
    needs_input_grad: tuple[bool, ...]
    inputs: list[Tensor]  # of `dragoman.nn.step_products`
    e: Tensor | None  # of `dragoman.nn.output`


@cache
def prefers_onednn() -> bool:
    """Return whether oneDNN multiplies matrices of float32 faster than torch's default library on this processor.

    This depends on the processor's name and instructions, never on a measurement, so that training can be repeated.
    """
    has_function = hasattr(torch.ops.mkldnn, "_linear_pointwise") and torch.backends.mkldnn.is_available()
    capabilities = cpu_capabilities()
    is_intel = "Intel" in str(capabilities.get("cpu_name", "Intel"))
    uses_mkl = torch.backends.mkl.is_available() and not is_intel
    return has_function and uses_mkl and bool(capabilities.get("avx512_f", False))


def linear(x: Tensor, W: Tensor, b: Tensor | None = None) -> Tensor:
    """Return W x + b for each row, like `torch.nn.functional.linear`.  # (..., inputs), (outputs, inputs), (outputs,)"""
    if not can_use_onednn(x, W, b):
        return functional.linear(x, W, b)
    if x.dim() > 2:
        return linear(x.flatten(0, -2), W, b).unflatten(0, x.shape[:-1])
    if torch.is_grad_enabled() and (x.requires_grad or W.requires_grad or (b is not None and b.requires_grad)):
        result: Tensor = _Linear.apply(x, W, b)  # type: ignore[no-untyped-call]
        return result
    return _onednn_linear(x, W, b)


def add_linear(p: Tensor, x: Tensor, W: Tensor) -> Tensor:
    """Return p + W x for each row.  # (rows, outputs), (rows, inputs), (outputs, inputs)"""
    return p + linear(x, W) if p.dtype != x.dtype or can_use_onednn(x, W) else torch.addmm(p, x, W.t())


def matmul(A: Tensor, B: Tensor) -> Tensor:
    """Return A B, without gradients.  # (rows, inner), (inner, columns) -> (rows, columns)"""
    if not can_use_onednn(A, B.t()):
        return A @ B
    if A.t().is_contiguous():  # oneDNN's function would copy all of A; instead, B and the result are copied
        if len(B) < MIN_INNER:
            return A @ B
        return _onednn_linear(B.t(), A).t().contiguous()  # (B^T A^T)^T = A B
    return _onednn_linear(A, B.t())


def can_use_onednn(x: Tensor, W: Tensor, b: Tensor | None = None) -> bool:
    """Return whether oneDNN is the better choice for a product, and its function can compute it."""
    return (
        x.numel() * len(W) >= MIN_SIZE
        and prefers_onednn()
        and x.dtype == W.dtype == torch.float32
        and x.device.type == "cpu"
        and x.dim() >= 2
        and x.shape[-1] == W.shape[-1]
        and (b is None or (b.dtype == torch.float32 and b.shape == W.shape[:1]))
        and not has_torch_function((x, W))
        and not torch.is_autocast_enabled("cpu")
        and not torch.compiler.is_compiling()  # exported models must run on all processors
        and not torch._C._are_functorch_transforms_active()  # for which oneDNN's function has no rules
        and bool(torch.backends.mkldnn.enabled)
    )


def _onednn_linear(x: Tensor, W: Tensor, b: Tensor | None = None) -> Tensor:
    b = None if b is None else b.contiguous()  # the function ignores strides of the bias
    y: Tensor = torch.ops.mkldnn._linear_pointwise(x, W, b, "none", [], "")
    return y


class _Linear(Function):
    """W x + b for each row. oneDNN's function has no derivative in torch."""

    @staticmethod
    def forward(ctx: GradientContext, x: Tensor, W: Tensor, b: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, W)
        return _onednn_linear(x, W, b)

    @staticmethod
    @once_differentiable
    def backward(ctx: GradientContext, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (dy,) = gradients
        x, W = ctx.saved_tensors
        needs_x, needs_W, needs_b = ctx.needs_input_grad
        dx = matmul(dy, W) if needs_x else None
        dW = matmul(dy.t(), x) if needs_W else None
        return dx, dW, dy.sum(dim=0) if needs_b else None

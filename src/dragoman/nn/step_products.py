"""Products with matrices that all steps of a recurrence share, and gathered gradients of these matrices.

Automatic differentiation adds up the gradient of a shared matrix step by step: one small product and one pass over the
whole matrix for each step. `GatheredGradientProducts` takes the matrix out of the steps' differentiation: it records
the input of each step, and when the gradients of all steps' outputs are known, computes the matrix's gradient at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.autograd.function import Function, once_differentiable

from dragoman.nn.products import GradientContext, add_linear, linear, matmul


class StepProducts:
    """How a step multiplies by matrices: ordinary products, differentiated step by step.

    Each product within a step has a name.
    """

    def prepare(self, p: Tensor, matrices: Mapping[str, Tensor]) -> Tensor:
        """Return the terms that the sums of all steps start with, where `add` will add exactly these products.

        # p: (rows of all steps, outputs), matrices: (outputs, inputs) each
        """
        return p

    def add(self, name: str, W: Tensor, p: Tensor, x: Tensor) -> Tensor:
        """Return p + W x for each row.  # (outputs, inputs), (rows, outputs), (rows, inputs) -> (rows, outputs)"""
        return add_linear(p, x, W)

    def linear(self, name: str, W: Tensor, x: Tensor) -> Tensor:
        """Return W x for each row.  # (outputs, inputs), (rows, inputs) -> (rows, outputs)"""
        return linear(x, W)

    def per_sentence(self, name: str, M: Tensor, x: Tensor) -> Tensor:
        """Return x M with a matrix for each sentence.  # (sentences, inputs, outputs), (sentences, rows, inputs)"""
        return torch.bmm(x, M)

    def next_step(self) -> None:
        """Continue with the next step."""


STEPWISE_PRODUCTS = StepProducts()


class GatheredGradientProducts(StepProducts):
    """Products of a given number of steps, whose matrices get their gradients from all steps at once.

    With a `dtype` such as bfloat16, products have inputs of this type. Each matrix is converted once.
    """

    def __init__(self, sizes: Sequence[int], dtype: torch.dtype | None = None) -> None:
        """`sizes` are the numbers of rows (or sentences) of the steps."""
        self._sizes = list(sizes)
        self._dtype = dtype
        self._step = 0
        self._inputs: dict[str, list[Tensor]] = {}  # by product: the input of each step
        self._matrices: dict[str, Tensor] = {}  # by product: its matrix, without gradients
        self._zeros: dict[str, tuple[Tensor, ...]] = {}  # by product: a zero term for each step
        self._prepared: set[str] = set()

    def next_step(self) -> None:
        self._step += 1

    def prepare(self, p: Tensor, matrices: Mapping[str, Tensor]) -> Tensor:
        for name, W in matrices.items():
            self._prepared.add(name)
            self._inputs[name] = []
            p = _apply(_GatheredGradient, p, W, self._inputs[name])
        return p

    def add(self, name: str, W: Tensor, p: Tensor, x: Tensor) -> Tensor:
        x = x if self._dtype is None else x.to(self._dtype)
        if name in self._prepared:
            self._inputs[name].append(x.detach())
        else:
            p = p + self._zero_term(name, x, W, _GatheredGradient, (len(W),))
        return add_linear(p, x, self._matrix(name, W))

    def linear(self, name: str, W: Tensor, x: Tensor) -> Tensor:
        x = x if self._dtype is None else x.to(self._dtype)
        zero = self._zero_term(name, x, W, _GatheredGradient, (len(W),))
        return add_linear(zero, x, self._matrix(name, W)).to(W.dtype)

    def per_sentence(self, name: str, M: Tensor, x: Tensor) -> Tensor:
        zero = self._zero_term(name, x, M, _GatheredGradientPerSentence, (x.shape[1], M.shape[2]))
        return torch.baddbmm(zero, x, M.detach())

    def _matrix(self, name: str, W: Tensor) -> Tensor:
        if name not in self._matrices:
            self._matrices[name] = W.detach() if self._dtype is None else W.detach().to(self._dtype)
        return self._matrices[name]

    def _zero_term(self, name: str, x: Tensor, W: Tensor, function: type[Function], shape: tuple[int, ...]) -> Tensor:
        """Record the input of a product and return a zero term at which the gradient of its output arrives."""
        if name not in self._zeros:
            self._inputs[name] = []
            zeros = x.new_zeros(sum(self._sizes), *shape)
            self._zeros[name] = _apply(function, zeros, W, self._inputs[name]).split(self._sizes)
        self._inputs[name].append(x.detach())
        return self._zeros[name][self._step]


def _apply(function: type[Function], p: Tensor, W: Tensor, inputs: list[Tensor]) -> Tensor:
    result: Tensor = function.apply(p, W, inputs)
    return result


class _GatheredGradient(Function):
    """The identity of p, which gives W the gradient dW = sum_t dp_t x_t^T."""

    @staticmethod
    def forward(ctx: GradientContext, p: Tensor, W: Tensor, inputs: list[Tensor]) -> Tensor:
        ctx.inputs = inputs
        return p

    @staticmethod
    @once_differentiable
    def backward(ctx: GradientContext, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (dp,) = gradients  # (rows of all steps, outputs)
        x = torch.cat(ctx.inputs)  # (rows of all steps, inputs)
        return dp, matmul(dp.to(x.dtype).t(), x), None


class _GatheredGradientPerSentence(_GatheredGradient):
    """The identity of p, which gives the matrix of each sentence the gradient dM = sum_t x_t^T dp_t."""

    @staticmethod
    @once_differentiable
    def backward(ctx: GradientContext, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (dp,) = gradients  # (steps * sentences, rows, outputs)
        x = torch.cat(ctx.inputs, dim=1)  # (sentences, steps * rows, inputs)
        dp = (
            dp.unflatten(0, (len(ctx.inputs), len(x))).transpose(0, 1).flatten(1, 2)
        )  # (sentences, steps * rows, outputs)
        return None, torch.bmm(x.transpose(1, 2), dp.to(x.dtype)), None


def product_dtype(tensor: Tensor) -> torch.dtype | None:
    """Return the type that `torch.autocast` asks for products of this tensor, or None outside of it."""
    device = tensor.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None

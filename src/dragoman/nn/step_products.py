"""Products by matrices that every step shares, and how training gathers the gradients of such matrices.

A step multiplies what it reads by a matrix that is the same at every step. Left to itself, automatic differentiation
adds up a gradient of that matrix step by step: as many small products, and as many passes over the whole matrix, as
there are steps. With `Gathering` the matrix takes no part in the steps' own differentiation: what each step read is
noted, and when the gradients of all steps' sums have arrived where these began, the matrix gets its own from all of
them in one product. A sum begins with what was computed for all steps ahead, or with a zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class Products(Protocol):
    """How a step multiplies. Each product within a step has a name of its own."""

    def ahead(self, p: Tensor, matrices: Mapping[str, Tensor]) -> Tensor:
        """The sums that steps begin with, where to each just the products `aside` of these names will be added.

        # p: (steps, rows, outputs), matrices: (outputs, inputs) each
        """
        ...

    def aside(self, name: str, p: Tensor, x: Tensor, W: Tensor) -> tuple[Tensor, Tensor]:
        """p and W such that p + W x is the sum wanted.  # (rows, outputs), (rows, inputs), (outputs, inputs)"""
        ...

    def linear(self, name: str, x: Tensor, W: Tensor) -> Tensor:
        """W x in each row.  # (rows, inputs) -> (rows, outputs)"""
        ...

    def by_sentence(self, name: str, x: Tensor, M: Tensor) -> Tensor:
        """x M, every sentence with its own M.  # (sentences, rows, inputs), (sentences, inputs, outputs)"""
        ...

    def step(self) -> None:
        """Go on to the next step."""
        ...


class Plain:
    """Products as they are."""

    def ahead(self, p: Tensor, matrices: Mapping[str, Tensor]) -> Tensor:
        return p

    def aside(self, name: str, p: Tensor, x: Tensor, W: Tensor) -> tuple[Tensor, Tensor]:
        return p, W

    def linear(self, name: str, x: Tensor, W: Tensor) -> Tensor:
        return x @ W.t()

    def by_sentence(self, name: str, x: Tensor, M: Tensor) -> Tensor:
        return torch.bmm(x, M)

    def step(self) -> None:
        """Nothing is noted, so nothing changes."""


PLAIN = Plain()


class Gathering:
    """The products of so many steps, taken one after the other: `step` goes on to the next."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._now = 0
        self._read: dict[str, list[Tensor]] = {}
        self._zeros: dict[str, tuple[Tensor, ...]] = {}
        self._ahead: set[str] = set()

    def step(self) -> None:
        self._now += 1

    def ahead(self, p: Tensor, matrices: Mapping[str, Tensor]) -> Tensor:
        for name, W in matrices.items():
            self._ahead.add(name)
            self._read[name] = []
            p = _gathered(_Gathered, p, W, self._read[name])
        return p

    def aside(self, name: str, p: Tensor, x: Tensor, W: Tensor) -> tuple[Tensor, Tensor]:
        if name in self._ahead:
            self._note(name, x)
            return p, W.detach()
        return p + self._noted(name, x, W, _Gathered, (len(x), len(W))), W.detach()

    def linear(self, name: str, x: Tensor, W: Tensor) -> Tensor:
        return torch.addmm(self._noted(name, x, W, _Gathered, (len(x), len(W))), x, W.detach().t())

    def by_sentence(self, name: str, x: Tensor, M: Tensor) -> Tensor:
        zero = self._noted(name, x, M, _GatheredBySentence, (*x.shape[:2], M.shape[2]))
        return torch.baddbmm(zero, x, M.detach())

    def _note(self, name: str, x: Tensor) -> None:
        self._read[name].append(x.detach())

    def _noted(self, name: str, x: Tensor, W: Tensor, gather: Any, shape: tuple[int, ...]) -> Tensor:
        """Note what a product reads; the zero that its gradient will arrive at."""
        if name not in self._zeros:
            self._read[name] = []
            self._zeros[name] = _gathered(gather, x.new_zeros(self._steps, *shape), W, self._read[name]).unbind()
        self._note(name, x)
        return self._zeros[name][self._now]


def _gathered(gather: Any, p: Tensor, W: Tensor, read: list[Tensor]) -> Tensor:
    """p, past which the gradient of W is gathered."""
    past: Tensor = gather.apply(p, W, read)
    return past


class _Gathered(torch.autograd.Function):
    """dW = sum_t dp_t x_t^T."""

    @staticmethod
    def forward(ctx: Any, p: Tensor, W: Tensor, read: list[Tensor]) -> Tensor:
        ctx.read = read
        return p

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (dp,) = gradients  # (steps, rows, outputs)
        x, ctx.read = torch.cat(ctx.read), None  # (steps * rows, inputs)
        return dp, dp.flatten(0, 1).t() @ x, None


class _GatheredBySentence(torch.autograd.Function):
    """dM = sum_t x_t^T dp_t for every sentence."""

    @staticmethod
    def forward(ctx: Any, p: Tensor, M: Tensor, read: list[Tensor]) -> Tensor:
        ctx.read = read
        return p

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (dp,) = gradients  # (steps, sentences, rows, outputs)
        x, ctx.read = torch.cat(ctx.read, dim=1), None  # (sentences, steps * rows, inputs)
        return None, torch.bmm(x.transpose(1, 2), dp.transpose(0, 1).flatten(1, 2)), None

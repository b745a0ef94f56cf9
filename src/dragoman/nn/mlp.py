"""Multi-layer perceptrons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Generator, Tensor, nn

from dragoman.nn.containers import TypedModuleList
from dragoman.nn.dropout import Dropout
from dragoman.nn.init import empty_linear, reset_linear


def step(x: Tensor) -> Tensor:
    """Return 1 where x > 0 and -1 elsewhere. The gradient is 0, so nothing is learned through it."""
    return torch.where(x > 0, 1.0, -1.0).to(x.dtype)


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"step": step, "tanh": torch.tanh, "relu": torch.relu}


class MLP(nn.Module):
    """h = tanh(W x + b) for each layer, or another activation (eqs. nnlm:stepmlp, nnlm:forward).

    Args:
        sizes: Input size and size of each hidden layer.
        activation: One of `ACTIVATIONS`.
        dropout: Dropout rate after each layer.
    """

    def __init__(
        self, sizes: Sequence[int], activation: str, dropout: float = 0.0, *, dtype: torch.dtype | None = None
    ):
        super().__init__()
        self.activation = activation
        self.layers = TypedModuleList(empty_linear(*pair, dtype=dtype) for pair in pairwise(sizes))
        self.dropout = Dropout(dropout)

    def reset_parameters(self, generator: Generator) -> None:
        for layer in self.layers:
            reset_linear(layer, generator)

    def forward(self, x: Tensor, generator: Generator | None = None) -> Tensor:
        """# (rows, inputs) -> (rows, size of the last layer)"""
        for layer in self.layers:
            x = self.dropout(ACTIVATIONS[self.activation](layer(x)), generator)
        return x

"""Basic layers: typed containers, creation and initial values of parameters, dropout, multi-layer perceptrons.

Layers are created without values, so nothing is drawn from torch's global generator. Their `reset_parameters` draws
from an explicit generator. Numbers are drawn in 64 bits, so that models of both precisions start from the same values.
"""

from __future__ import annotations

import math
from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from itertools import pairwise
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
import torch
from torch import Generator, Tensor, nn

from dragoman.data.corpus import Corpus
from dragoman.nn.activations import ACTIVATIONS
from dragoman.nn.products import linear

M = TypeVar("M", bound=nn.Module)

DTYPES = {"float32": torch.float32, "float64": torch.float64}
DROPOUT_STEPS = 1 << 16  # dropout rates are rounded to multiples of 1 / DROPOUT_STEPS
NUMBERS_PER_DRAW = 4  # 16-bit numbers in one 64-bit draw


class TypedModuleList(nn.ModuleList, Generic[M]):
    """A `torch.nn.ModuleList` of modules of one type."""

    if TYPE_CHECKING:

        def __init__(self, modules: Iterable[M]): ...
        def __iter__(self) -> Iterator[M]: ...
        def __getitem__(self, index: int) -> M: ...  # type: ignore[override]


class TypedModuleDict(nn.ModuleDict, Generic[M]):
    """A `torch.nn.ModuleDict` of modules of one type."""

    if TYPE_CHECKING:

        def __init__(self, modules: Mapping[str, M]): ...
        def __getitem__(self, key: str) -> M: ...
        def items(self) -> ItemsView[str, M]: ...
        def values(self) -> ValuesView[M]: ...


class Linear(nn.Linear):
    """A `torch.nn.Linear` that multiplies with the faster library; see `dragoman.nn.products`."""

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)


def empty_linear(inputs: int, outputs: int, *, bias: bool = True) -> nn.Linear:
    """Return a linear layer without initial values.

    `torch.nn.utils.skip_init` would import torch._dynamo, which takes longer than translating a line.
    """
    layer = Linear.__new__(Linear)
    nn.Module.__init__(layer)
    layer.in_features, layer.out_features = inputs, outputs
    layer.weight = nn.Parameter(torch.empty(outputs, inputs))
    layer.register_parameter("bias", nn.Parameter(torch.empty(outputs)) if bias else None)
    return layer


def empty_embedding(words: int, size: int) -> nn.Embedding:
    """Return an embedding without initial values."""
    return nn.Embedding.from_pretrained(torch.empty(words, size), freeze=False)


@torch.no_grad()
def uniform_(tensor: Tensor, bound: float, generator: Generator) -> None:
    """Fill a tensor with numbers between -bound and bound."""
    tensor.copy_((torch.rand(tensor.shape, generator=generator, dtype=torch.float64) * 2 - 1) * bound)


def glorot_(weight: Tensor, generator: Generator) -> None:
    """Fill a matrix so that it preserves the variance of values and gradients (Glorot and Bengio 2010)."""
    uniform_(weight, math.sqrt(6 / sum(weight.shape)), generator)


def reset_linear(layer: nn.Linear, generator: Generator) -> None:
    """Give a linear layer a Glorot matrix and zero biases."""
    glorot_(layer.weight, generator)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)


@torch.no_grad()
def reset_gate_biases(bias: Tensor, gates: Sequence[str], initial_biases: Mapping[str, float]) -> None:
    """Set the stacked biases of a cell's gates, 0 by default.  # bias: (gates * H,)"""
    for name, part in zip(gates, bias.chunk(len(gates)), strict=True):
        part.fill_(initial_biases.get(name, 0.0))


def log_unigram(corpus: Corpus, dtype: torch.dtype) -> Tensor:
    """Return the log of the relative frequency of each word, with one added to each count.  # (|V|,)

    With these as output biases and small weights, a model starts as a unigram model.
    """
    counts = np.bincount(corpus.ids_with_boundaries(starts=0), minlength=len(corpus.vocab)) + 1.0
    return torch.from_numpy(np.log(counts / counts.sum())).to(dtype)


class Dropout(nn.Module):
    """Set a share of the elements to zero in training and scale up the others, with an explicit random generator.

    With `shared_dim`, the same elements are dropped at all positions of this dimension (variational dropout, Gal and
    Ghahramani 2016).
    """

    def __init__(self, rate: float, shared_dim: int | None = None):
        super().__init__()
        self.rate, self.shared_dim = rate, shared_dim

    def forward(self, x: Tensor, generator: Generator | None = None) -> Tensor:
        """Drop elements of x; without a generator, torch's default one is used. The identity outside training."""
        if not self.training or self.rate == 0.0:
            return x
        shape = [1 if dim == self.shared_dim else size for dim, size in enumerate(x.shape)]
        size = math.prod(shape)
        # Uniform 16-bit numbers; drawing four at once takes a quarter of the time.
        bits = torch.empty(-(-size // NUMBERS_PER_DRAW), dtype=torch.int64, device=x.device)
        bits.random_(torch.iinfo(torch.int64).min, None, generator=generator)
        numbers = bits.view(torch.int16)[:size].view(*shape)
        retained = min(max(1, round((1.0 - self.rate) * DROPOUT_STEPS)), DROPOUT_STEPS - 1)  # of the 16-bit numbers
        mask = numbers < retained - DROPOUT_STEPS // 2
        return x * mask.to(x.dtype).mul_(DROPOUT_STEPS / retained)

    def extra_repr(self) -> str:
        return f"{self.rate}" if self.shared_dim is None else f"{self.rate}, shared_dim={self.shared_dim}"


def default_generator(device: torch.device) -> Generator:
    """Return torch's default generator of a device."""
    return torch.cuda.default_generators[device.index or 0] if device.type == "cuda" else torch.default_generator


class MLP(nn.Module):
    """h = tanh(W x + b) for each layer, or another of `ACTIVATIONS` (eqs. nnlm:stepmlp, nnlm:forward).

    The sizes are those of the input and of each hidden layer. There is dropout after each layer.
    """

    def __init__(self, sizes: Sequence[int], activation: str, dropout: float = 0.0):
        super().__init__()
        self.activation = activation
        self.layers = TypedModuleList(empty_linear(*pair) for pair in pairwise(sizes))
        self.dropout = Dropout(dropout)

    def reset_parameters(self, generator: Generator) -> None:
        for layer in self.layers:
            reset_linear(layer, generator)

    @torch.no_grad()
    def output_bound(self, bound: Tensor) -> Tensor:
        """Return a bound of the absolute outputs, given one of the inputs.  # () -> ()"""
        for layer in self.layers:
            bound = (layer.weight.abs().double().sum(dim=1) * bound + layer.bias.abs()).max()
            bound = bound.clamp(max=1.0) if self.activation == "tanh" else bound
        return bound

    def forward(self, x: Tensor, generator: Generator | None = None) -> Tensor:
        """# (rows, inputs) -> (rows, size of the last layer)"""
        for layer in self.layers:
            x = self.dropout(ACTIVATIONS[self.activation](layer(x)), generator)
        return x

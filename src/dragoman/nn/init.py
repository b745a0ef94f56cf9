"""Creation and initial values of parameters.

Layers are created without values, so nothing is drawn from torch's global generator. Their `reset_parameters` draws
from an explicit generator. Numbers are drawn in 64 bits, so that models of both precisions start from the same values.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Generator, Tensor, nn

from dragoman.data.corpus import Corpus

PRECISIONS = {"float32": torch.float32, "float64": torch.float64}


def empty_linear(inputs: int, outputs: int, *, bias: bool = True, dtype: torch.dtype | None = None) -> nn.Linear:
    """Return a linear layer without initial values.

    `torch.nn.utils.skip_init` would import torch._dynamo, which takes longer than translating a line.
    """
    layer = nn.Linear.__new__(nn.Linear)
    nn.Module.__init__(layer)
    layer.in_features, layer.out_features = inputs, outputs
    layer.weight = nn.Parameter(torch.empty(outputs, inputs, dtype=dtype))
    layer.register_parameter("bias", nn.Parameter(torch.empty(outputs, dtype=dtype)) if bias else None)
    return layer


def empty_embedding(words: int, size: int, *, dtype: torch.dtype | None = None) -> nn.Embedding:
    """Return an embedding without initial values."""
    return nn.Embedding.from_pretrained(torch.empty(words, size, dtype=dtype), freeze=False)


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


def log_unigram(corpus: Corpus, dtype: torch.dtype) -> Tensor:
    """Return the log of the relative frequency of each word, with one added to each count.  # (|V|,)

    With these as output biases and small weights, a model starts as a unigram model.
    """
    counts = np.bincount(corpus.ids_with_boundaries(starts=0), minlength=len(corpus.vocab)) + 1.0
    return torch.from_numpy(np.log(counts / counts.sum())).to(dtype)

"""What parameters are before training."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Generator, Tensor

from dragoman.data.corpus import Corpus

PRECISIONS = {"float32": torch.float32, "float64": torch.float64}


def uniform(shape: tuple[int, ...], reach: float, chance: Generator, dtype: torch.dtype) -> Tensor:
    """Numbers from -reach to reach. Drawn in 64 bits, so that either precision starts from the same."""
    return ((torch.rand(shape, generator=chance, dtype=torch.float64) * 2 - 1) * reach).to(dtype)


def glorot(outputs: int, inputs: int, chance: Generator, dtype: torch.dtype) -> Tensor:
    """A matrix that keeps the size of what passes through it, forth and back (Glorot and Bengio 2010)."""
    return uniform((outputs, inputs), math.sqrt(6 / (outputs + inputs)), chance, dtype)


def log_unigram(corpus: Corpus, dtype: torch.dtype) -> Tensor:
    """log of how frequent words are, each counted once more than it was seen: with these as biases and all else near
    0, a model starts as a unigram model.  # (|V|,)"""
    counts = np.bincount(corpus.ids_with_boundaries(starts=0), minlength=len(corpus.vocab)) + 1.0
    return torch.from_numpy(np.log(counts / counts.sum())).to(dtype)

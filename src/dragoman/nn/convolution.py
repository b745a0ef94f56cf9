"""Convolutions over words, and pooling over a sentence (tutorial, "Convolutional Neural Networks").

Sentences are padded to (sentences, longest, ...) and come with their lengths. Values in the padding have no effect.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

Pooling = Callable[["Convolved", int], Tensor]  # the number k is used by k-max only -> (sentences, pooled size)


class Convolved(NamedTuple):
    """H: a vector of n features for each window of w words."""

    h: Tensor  # (sentences, columns, n)
    columns: Tensor  # (sentences,) int64: |F| - w + 1, and 1 for a sentence shorter than w

    @property
    def mask(self) -> Tensor:
        """True where a sentence has a column.  # (sentences, columns)"""
        return _length_mask(self.columns, self.h.shape[1])


def convolve(m: Tensor, lengths: Tensor, filters: nn.Linear) -> Convolved:
    """Return h_t = W concat(m_t, m_{t+1}, ..., m_{t+w-1}) + b for all windows, with one product of matrices.

    # m: (sentences, longest, L_m), lengths: (sentences,), filters: from w L_m to n

    The tutorial has no bias; Kim (2014) has one. Sentences shorter than w are padded with zero vectors.
    """
    words, size = m.shape[1:]
    w, rest = divmod(filters.in_features, size)
    assert rest == 0, f"filters over {filters.in_features} numbers, but vectors of {size}"
    m = torch.where(_length_mask(lengths, words)[..., None], m, m.new_zeros(()))
    m = pad(m, (0, 0, 0, max(w - words, 0)))  # (sentences, w or more, L_m)
    windows = m.unfold(1, w, 1).transpose(2, 3).flatten(2)  # (sentences, columns, w L_m)
    return Convolved(filters(windows), (lengths - w + 1).clamp(min=1))


def average_pool(convolved: Convolved, k: int) -> Tensor:
    """Return the mean of each filter.  # -> (sentences, n)"""
    h = torch.where(convolved.mask[..., None], convolved.h, convolved.h.new_zeros(()))
    return h.sum(dim=1) / convolved.columns[:, None]


def max_pool(convolved: Convolved, k: int) -> Tensor:
    """Return the maximum of each filter.  # -> (sentences, n)"""
    return _masked_with_minus_infinity(convolved).amax(dim=1)


def k_max_pool(convolved: Convolved, k: int) -> Tensor:
    """Return the k largest values of each filter in the order of the sentence (Kalchbrenner et al. 2014).

    # -> (sentences, k n): the first value of every filter, then the second of every filter, ...

    Missing values are 0. Of equal values the earlier ones are taken.
    """
    h = pad(convolved.h, (0, 0, 0, max(k - convolved.h.shape[1], 0)))  # (sentences, k or more, n)
    padded = _masked_with_minus_infinity(Convolved(h, convolved.columns))
    columns = padded.sort(dim=1, descending=True, stable=True).indices[:, :k].sort(dim=1).values  # (sentences, k, n)
    values = h.gather(1, columns)  # (sentences, k, n)
    in_sentence = columns < convolved.columns[:, None, None]
    return torch.where(in_sentence, values, values.new_zeros(())).flatten(1)


POOLINGS: dict[str, Pooling] = {"average": average_pool, "max": max_pool, "k-max": k_max_pool}


def pooled_size(pooling: str, filters: int, k: int) -> int:
    """Return the length of the vector of a sentence."""
    return k * filters if pooling == "k-max" else filters


def _length_mask(lengths: Tensor, longest: int) -> Tensor:
    """True at the positions of each sentence.  # (sentences, longest)"""
    return torch.arange(longest, device=lengths.device) < lengths[:, None]


def _masked_with_minus_infinity(convolved: Convolved) -> Tensor:
    """# (sentences, columns, n)"""
    return convolved.h.masked_fill(~convolved.mask[..., None], -torch.inf)

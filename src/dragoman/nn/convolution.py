"""Filters over runs of words, and what is left of them over a sentence (tutorial, "Convolutional Neural Networks").

Sentences stand side by side in a grid (sentences, longest, ...), with the length of each. What stands in the padding
never matters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import linear, pad

Activation = Callable[[Tensor], Tensor]
Pooling = Callable[["Convolved", int], Tensor]  # and k, of which only k-max takes notice -> (sentences, pooled size)


class Convolved(NamedTuple):
    """H: a vector of n features for each run of w words."""

    h: Tensor  # (sentences, most columns, n)
    columns: Tensor  # (sentences,) int64: |F| - w + 1, and 1 for a sentence shorter than w

    @property
    def mask(self) -> Tensor:
        """Where a sentence's own columns stand.  # (sentences, most columns)"""
        return _within(self.columns, self.h.shape[1])


def convolve(
    m: Tensor, lengths: Tensor, W: Tensor, b: Tensor | None = None, activation: Activation | None = None
) -> Convolved:
    """h_t = W concat(m_t, m_{t+1}, ..., m_{t+w-1}), with one product of matrices for all runs of all sentences.

    # m: (sentences, longest, L_m), lengths: (sentences,), W: (n, w L_m), b: (n,)

    The tutorial's equation ends there; Kim (2014) has a bias and a function on top. Sentences shorter than w are filled
    up with vectors of zeros.
    """
    words, size = m.shape[1:]
    w, rest = divmod(W.shape[1], size)
    assert rest == 0, f"filters over {W.shape[1]} numbers, but vectors of {size}"
    own = torch.where(_within(lengths, words)[..., None], m, m.new_zeros(()))  # nothing of what stands in the padding
    own = pad(own, (0, 0, 0, max(w - words, 0)))  # (sentences, w or more, L_m)
    runs = own.unfold(1, w, 1).transpose(2, 3).flatten(2)  # (sentences, columns, L_m, w) -> (sentences, columns, w L_m)
    h = linear(runs, W, b)  # (sentences, columns, n)
    return Convolved(h if activation is None else activation(h), (lengths - w + 1).clamp(min=1))


def average(convolved: Convolved, k: int) -> Tensor:
    """The mean of each filter.  # -> (sentences, n)"""
    h = torch.where(convolved.mask[..., None], convolved.h, convolved.h.new_zeros(()))
    return h.sum(dim=1) / convolved.columns[:, None]


def largest(convolved: Convolved, k: int) -> Tensor:
    """The largest of each filter.  # -> (sentences, n)"""
    return _below_all(convolved).amax(dim=1)


def k_largest(convolved: Convolved, k: int) -> Tensor:
    """The k largest of each filter in the order in which they occur (Kalchbrenner et al. 2014).

    # -> (sentences, k n): the first of every filter, then the second of every filter, ...

    Where there are fewer, 0 fills up. Of equal ones the earlier are taken, whatever sentences stand around.
    """
    h = pad(convolved.h, (0, 0, 0, max(k - convolved.h.shape[1], 0)))  # (sentences, k or more, n)
    by_size = _below_all(Convolved(h, convolved.columns)).sort(dim=1, descending=True, stable=True).indices
    in_order = by_size[:, :k].sort(dim=1).values  # (sentences, k, n)
    found = h.gather(1, in_order)  # (sentences, k, n)
    own = in_order < convolved.columns[:, None, None]  # padding comes last: it is the smallest
    return torch.where(own, found, found.new_zeros(())).flatten(1)


POOLINGS: dict[str, Pooling] = {"average": average, "max": largest, "k-max": k_largest}


def pooled_size(pooling: str, filters: int, k: int) -> int:
    """How long the vector of a sentence is."""
    return k * filters if pooling == "k-max" else filters


def _within(lengths: Tensor, longest: int) -> Tensor:
    """Where a sentence's own places are.  # (sentences, longest)"""
    return torch.arange(longest, device=lengths.device) < lengths[:, None]


def _below_all(convolved: Convolved) -> Tensor:
    """The columns with -inf in padding.  # (sentences, most columns, n)"""
    return convolved.h.masked_fill(~convolved.mask[..., None], -torch.inf)

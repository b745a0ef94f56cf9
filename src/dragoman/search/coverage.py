"""A penalty on what a translation leaves out (Wu et al. 2016; tutorial, section "Intuitive Priors on Attention"):

    strength * sum_j log min(sum_t alpha_{t,j}, 1)

over the words of the source: 0 where each was looked at as much as a whole word, lower the less.
"""

from __future__ import annotations

import torch
from torch import Tensor

MIN_ATTENTION = 1e-6  # attention that a word has at least, so that the penalty is finite


def coverage_penalty(coverage: Tensor, source_words: Tensor, strength: float) -> Tensor:
    """What is added to the score of each hypothesis; never above 0.

    # coverage: (n, longest source) the sum of its attention, source_words: (n,) -> (n,)

    >>> coverage_penalty(torch.tensor([[1.3, 0.5, 0.2]]), torch.tensor([2]), 2.0).exp()
    tensor([0.2500], dtype=torch.float64)
    """
    logs = coverage.double().clamp(MIN_ATTENTION, 1.0).log()  # (n, longest)
    own = torch.arange(coverage.shape[1]) < source_words[:, None]
    return strength * (logs * own).sum(dim=1)

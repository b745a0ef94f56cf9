"""Losses on attention, each with a value per token, and the gradient of hard attention.

- `supervision_loss`: -sum_j gold_{t,j} log alpha_{t,j} of words whose alignment is known (Mi et al. 2016).
- `fertility_loss`: (sum_t alpha_{t,j} - phi_j)^2 of each source word, where phi_j is its expected number of
  translations (Cohn et al. 2016), in equal parts for the tokens of its sentence.
- `agreement`: sum_j alpha_{t,j} beta_{j,t} of each target word t, where beta is the attention of a translator in the
  other direction. Summed over a sentence, it is the trace of the product of the two matrices (Cohn et al. 2016).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from dragoman.data.alignments import WordAlignments

MIN_ATTENTION = 1e-6  # lower values are raised before a logarithm


def gold_attention(alignments: WordAlignments, steps: int, longest: int) -> Tensor:
    """Return uniform attention to the aligned words; 0 where there are none.  # (steps, pairs, longest)"""
    gold = torch.zeros(steps, len(alignments), longest)
    links = (alignments.target, alignments.pair_indices, alignments.source)
    gold[tuple(torch.from_numpy(part.astype(np.int64)) for part in links)] = 1.0
    return gold / gold.sum(dim=2, keepdim=True).clamp(min=1.0)


def supervision_loss(attention: Tensor, alignments: WordAlignments) -> Tensor:
    """# attention: (steps, pairs, longest) -> (steps, pairs)"""
    gold = gold_attention(alignments, *attention.shape[::2]).to(attention)
    return -(gold * attention.clamp(min=MIN_ATTENTION).log()).sum(dim=2)


def fertility_loss(attention: Tensor, mask: Tensor, phi: Tensor, source_words: Tensor) -> Tensor:
    """# attention: (steps, pairs, longest), mask: (steps, pairs), phi: (pairs, longest) -> (steps, pairs)

    `</s>` of the source is left out.  # source_words: (pairs,)
    """
    coverage = (attention * mask[:, :, None]).sum(dim=0)  # (pairs, longest)
    is_word = torch.arange(attention.shape[2], device=attention.device) < source_words[:, None]
    per_sentence = ((coverage - phi) ** 2 * is_word).sum(dim=1)  # (pairs,)
    return mask * per_sentence / mask.sum(dim=0)


def agreement(attention: Tensor, reverse_attention: Tensor, target_words: Tensor, source_words: Tensor) -> Tensor:
    """# attention: (steps, pairs, longest), reverse_attention: (longest, pairs, steps) -> (steps, pairs)

    `</s>` of both sides and padding are left out.  # target_words, source_words: (pairs,)
    """
    steps, _, longest = attention.shape
    is_target = torch.arange(steps, device=attention.device)[:, None] < target_words  # (steps, pairs)
    is_source = torch.arange(longest, device=attention.device) < source_words[:, None]  # (pairs, longest)
    return (attention * reverse_attention.permute(2, 1, 0) * is_source).sum(dim=2) * is_target


def reinforce(log_probs: Tensor, attention: Tensor, choice: Tensor, baseline: Tensor) -> Tensor:
    """Return log_probs with the gradient of sampled attention added (Williams 1992).

    The gradient has an additional term: that of log alpha of the chosen word, times how much better the next word was
    predicted than by soft attention, the baseline.

    # log_probs, baseline: (tokens,); attention, choice: (tokens, longest), choice is 1 at one word, or attention
    """
    sampled = choice * (choice == 1)
    log_choice = (attention.clamp(min=MIN_ATTENTION).log() * sampled.detach()).sum(dim=1)
    term = log_choice * (log_probs - baseline).detach()
    return log_probs + term - term.detach()

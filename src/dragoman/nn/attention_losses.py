"""What attention is taught besides predicting words: penalties of training, each a number for every token; and how it
is taught to choose.

- `supervision`: -sum_j gold_{t,j} log alpha_{t,j} of words whose alignment is known (Mi et al. 2016).
- `fertility`: (sum_t alpha_{t,j} - phi_j)^2 of each source word, phi_j being what it is expected to become (Cohn et al.
  2016), in equal parts for the tokens of its sentence.

And what is won: `agreement`, sum_j alpha_{t,j} beta_{j,t} of each target word t, beta being the attention of a
translator back. Over the words of a sentence that is the trace of the product of the two matrices (Cohn et al. 2016).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from dragoman.data.alignments import WordAlignments

LEAST = 1e-6  # attention whose logarithm is taken


def gold_attention(links: WordAlignments, steps: int, longest: int) -> Tensor:
    """Where each word is known to come from, in equal parts; 0 where that is not known.  # (steps, pairs, longest)"""
    gold = torch.zeros(steps, len(links), longest)
    places = (torch.from_numpy(part.astype(np.int64)) for part in (links.target, links.pair_indices, links.source))
    gold[tuple(places)] = 1.0
    return gold / gold.sum(dim=2, keepdim=True).clamp(min=1.0)


def supervision(alphas: Tensor, links: WordAlignments) -> Tensor:
    """# alphas: (steps, pairs, longest) -> (steps, pairs)"""
    gold = gold_attention(links, *alphas.shape[::2]).to(alphas)
    return -(gold * alphas.clamp(min=LEAST).log()).sum(dim=2)


def fertility(alphas: Tensor, mask: Tensor, phi: Tensor, source_words: Tensor) -> Tensor:
    """# alphas: (steps, pairs, longest), mask: (steps, pairs), phi: (pairs, longest) -> (steps, pairs)

    Source words are counted without `</s>`.
    """
    coverage = (alphas * mask[:, :, None]).sum(dim=0)  # (pairs, longest)
    own = torch.arange(alphas.shape[2], device=alphas.device) < source_words[:, None]
    whole = ((coverage - phi) ** 2 * own).sum(dim=1)  # (pairs,)
    return mask * whole / mask.sum(dim=0)


def agreement(alphas: Tensor, back: Tensor, words: Tensor, source_words: Tensor) -> Tensor:
    """# alphas: (steps, pairs, longest), back: (longest, pairs, steps) -> (steps, pairs)

    Over words alone: neither side's `</s>` counts, nor what is padded.  # words, source_words: (pairs,)
    """
    steps, _, longest = alphas.shape
    of_target = torch.arange(steps, device=alphas.device)[:, None] < words  # (steps, pairs)
    of_source = torch.arange(longest, device=alphas.device) < source_words[:, None]  # (pairs, longest)
    return (alphas * back.permute(2, 1, 0) * of_source).sum(dim=2) * of_target


def reinforced(log_probs: Tensor, alphas: Tensor, chosen: Tensor, baseline: Tensor) -> Tensor:
    """log P of the words, through which hard attention learns by what came of its choices (Williams 1992).

    The value is log P as it is. Its gradient has a part more, that of log alpha of the word chosen, times how much
    better the next word was predicted then than by a look at all words: the baseline.  # (tokens,) each

    # alphas and chosen: (tokens, longest); chosen is 1 at one word, or alphas where none was chosen
    """
    choices = chosen * (chosen == 1)
    picked = (alphas.clamp(min=LEAST).log() * choices.detach()).sum(dim=1)
    bonus = picked * (log_probs - baseline).detach()
    return log_probs + bonus - bonus.detach()

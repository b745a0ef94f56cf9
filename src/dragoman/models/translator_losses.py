"""Auxiliary losses on the attention of a translator, as its settings ask for."""

from __future__ import annotations

import torch
from torch import Tensor

from dragoman.core.errors import DataError
from dragoman.data.corpus import ParallelCorpus
from dragoman.models.translator_config import TranslatorConfig
from dragoman.nn.attention import Memory
from dragoman.nn.attention_losses import fertility_loss, supervision_loss


def attention_loss(
    attention: Tensor, batch: ParallelCorpus, memory: Memory, settings: TranslatorConfig
) -> Tensor | None:
    """Return the weighted sum of the losses on attention, or None without any.

    # attention: (steps, pairs, longest) -> (steps, pairs)
    """
    losses = []
    if settings.supervision:
        if batch.alignments is None:
            remedy = "give one, or create one with dragoman align"
            raise DataError(f"supervision: the sentence pairs have no word alignment; {remedy}")
        losses.append(settings.supervision * supervision_loss(attention, batch.alignments))
    if settings.fertility_penalty:
        phi = memory.prior_features[list(settings.priors).index("fertility")]
        assert phi is not None
        sizes = (torch.from_numpy(side.sizes).to(attention.device) for side in (batch.source, batch.target))
        source_tokens, target_tokens = sizes
        mask = torch.arange(len(attention), device=attention.device)[:, None] < target_tokens  # (steps, pairs)
        loss = fertility_loss(attention, mask.to(attention), phi, source_tokens - 1)
        losses.append(settings.fertility_penalty * loss)
    return sum(losses[1:], losses[0]) if losses else None

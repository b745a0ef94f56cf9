"""What the attention of a translator is taught besides predicting words, as its settings have it."""

from __future__ import annotations

import torch
from torch import Tensor

from dragoman.core.errors import DataError
from dragoman.data.corpus import ParallelCorpus
from dragoman.models.translator_config import TranslatorConfig
from dragoman.nn.attention import Memory
from dragoman.nn.attention_losses import fertility, reinforced, supervision
from dragoman.nn.decoder import Unrolled


def taught(
    log_probs: Tensor,
    unrolled: Unrolled,
    own: Tensor,
    pairs: ParallelCorpus,
    memory: Memory,
    settings: TranslatorConfig,
    baseline: Tensor | None = None,
) -> Tensor:
    """log P of every token, with what training has to pay for attention.  # (tokens,)

    # own: (tokens,) where the tokens stand among steps * rows; baseline: (tokens,) log P by soft attention, for hard
    """
    if unrolled.alphas is None:
        return log_probs

    def of_tokens(part: Tensor) -> Tensor:  # (steps, rows, ...) -> (tokens, ...)
        return part.flatten(0, 1).index_select(0, own)

    if unrolled.chosen is not None:
        assert baseline is not None, "hard attention is taught beside soft"
        log_probs = reinforced(log_probs, of_tokens(unrolled.alphas), of_tokens(unrolled.chosen), baseline)
    for penalty in _penalties(unrolled.alphas, pairs, memory, settings):
        log_probs = log_probs - of_tokens(penalty)
    return log_probs


def _penalties(alphas: Tensor, pairs: ParallelCorpus, memory: Memory, settings: TranslatorConfig) -> list[Tensor]:
    """Those that the settings ask for.  # (steps, rows) each"""
    found = []
    if settings.supervision:
        if pairs.alignments is None:
            raise DataError("supervision: these pairs have no alignment; give one, or find one with dragoman align")
        found.append(settings.supervision * supervision(alphas, pairs.alignments))
    if settings.fertility_penalty:
        phi = memory.believed[list(settings.priors).index("fertility")]
        assert phi is not None, "fertility remembers it"
        read, said = (torch.from_numpy(side.sizes).to(alphas.device) for side in (pairs.source, pairs.target))
        mask = torch.arange(len(alphas), device=alphas.device)[:, None] < said  # (steps, rows)
        found.append(settings.fertility_penalty * fertility(alphas, mask.to(alphas), phi, read - 1))
    return found

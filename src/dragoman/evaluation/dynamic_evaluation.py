"""Dynamic evaluation: the model is updated on the text that it is evaluated on (Mikolov et al. 2010).

Each word is predicted before the model is updated on it. But the result is not that of the trained model, nor of any
single model, and reports have to say so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.core.scorer import Scorer
from dragoman.data.corpus import Corpus
from dragoman.evaluation.likelihood import TokenScores, unknown_log_probs
from dragoman.training.protocols import LikelihoodModel

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class DynamicEvaluation:
    """Settings of the updates."""

    rate: float  # learning rate: theta <- theta - rate * gradient of the mean loss
    words: int = 20  # tokens per update
    decay: float = 0.001  # share of the distance to the trained parameters that each update goes back
    clip: float = 1.0  # maximum norm of the gradient

    def __post_init__(self) -> None:
        if not 0 < self.rate < math.inf:
            raise DataError(f"a learning rate of {self.rate} for dynamic evaluation: give a number above 0")


def dynamic_token_scores(scorer: Scorer, corpus: Corpus, settings: DynamicEvaluation) -> TokenScores:
    """Score each token with a model that is updated on the way. Its parameters are restored afterwards."""
    corpus.require_vocab(scorer.vocab)
    return TokenScores(corpus, dynamic_log_probs(scorer, corpus, settings), unknown_log_probs(scorer, corpus))


def dynamic_log_probs(model: Any, corpus: Corpus, settings: DynamicEvaluation) -> NDArray[np.float64]:
    """Compute log P of each token, before the model was updated on it.  # (tokens,)"""
    if not isinstance(model, LikelihoodModel):
        raise DataError(f"dynamic evaluation needs a model that learns by gradient descent; {model.kind} models do not")
    trained = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    parts = [np.zeros(0)]
    try:
        for log_probs in _log_prob_chunks(model, corpus, settings.words):
            parts.append(log_probs.detach().double().cpu().numpy())
            _update(model, -log_probs.mean(), settings, trained)
    finally:
        for name, parameter in model.named_parameters():
            parameter.data.copy_(trained[name])
    return np.concatenate(parts)


def _log_prob_chunks(model: Any, corpus: Corpus, tokens: int) -> Iterator[Tensor]:
    """log P of a few tokens at a time, in the order of the text, with the current parameters.

    Chunks are whole sentences, or segments of the stream for a model that carries its state over.
    """
    from dragoman.data.batches import TextStream

    if not model.carries:
        yield from (model(chunk).log_probs for chunk in corpus.chunks(tokens))
        return
    carry = None
    for segment in TextStream.from_corpus(corpus, rows=1, steps=tokens) if corpus.num_tokens else ():
        output = model(segment, carry=carry)
        carry = output.carry
        yield output.log_probs


def _update(model: LikelihoodModel, loss: Tensor, settings: DynamicEvaluation, trained: dict[str, Tensor]) -> None:
    """Take one gradient step, and a small step back towards the trained parameters."""
    import torch

    parameters = dict(model.named_parameters())
    gradients = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
    norm = float(torch.nn.utils.get_total_norm([gradient for gradient in gradients if gradient is not None]))
    if not math.isfinite(norm):
        raise DataError(f"dynamic evaluation diverged at a learning rate of {settings.rate:g}; give a lower one")
    rate = settings.rate * min(1.0, settings.clip / max(norm, 1e-12))
    with torch.no_grad():
        for (name, tensor), gradient in zip(parameters.items(), gradients, strict=True):
            if gradient is not None:
                tensor.sub_(gradient, alpha=rate).lerp_(trained[name], settings.decay)

"""Dynamic evaluation: a model that goes on learning from the very text it is judged by (Mikolov et al. 2010).

Every word is predicted before it is learned from, so no probability is cheated for; but what is measured is no longer
the model that was trained, and no longer one model: reports have to say so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.core.scorer import Scorer
from dragoman.data.corpus import Corpus
from dragoman.evaluation.likelihood import TokenScores
from dragoman.evaluation.log_probs import unknown_log_probs
from dragoman.training.protocols import Trainable

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class DynamicEvaluation:
    """How a model goes on learning."""

    rate: float  # of learning: theta <- theta - rate * gradient of the mean loss of some words
    words: int = 20  # that many at a time
    decay: float = 0.001  # share of the way back to the trained parameters that is gone after each step
    clip: float = 1.0  # the longest gradient

    def __post_init__(self) -> None:
        if not 0 < self.rate < math.inf:
            raise DataError(f"a rate of {self.rate} for dynamic evaluation: it must be a number above 0")


def dynamic_token_scores(scorer: Scorer, corpus: Corpus, settings: DynamicEvaluation) -> TokenScores:
    """What each token costs by a model that learns on the way. The model is the same afterwards."""
    corpus.require_vocab(scorer.vocab)
    return TokenScores(corpus, dynamic_log_probs(scorer, corpus, settings), unknown_log_probs(scorer, corpus))


def dynamic_log_probs(model: Any, corpus: Corpus, settings: DynamicEvaluation) -> NDArray[np.float64]:
    """log P of every token, said before the model learned from it.  # (tokens,)"""
    if not hasattr(model, "batch_log_probs"):
        raise DataError(f"dynamic evaluation is for models trained by gradients; a {model.kind} model has none")
    parts = [np.zeros(0)]
    with _trainable_parameters(model) as trained:
        for log_probs in _log_prob_chunks(model, corpus, settings.words):
            parts.append(log_probs.detach().double().cpu().numpy())
            _update(model, -log_probs.mean(), settings, trained)
    return np.concatenate(parts)


def _log_prob_chunks(model: Any, corpus: Corpus, words: int) -> Iterator[Tensor]:
    """log P of some words at a time, in the text's order, by the parameters of the moment.

    A model that carries its state over is asked about the next words; another about the next sentences.
    """
    from dragoman.data.batches import TextStream

    if not model.carries:
        yield from (model.batch_log_probs(piece) for piece in corpus.chunks(words))
        return
    carry = None
    for segment in TextStream.from_corpus(corpus, rows=1, steps=words) if corpus.num_tokens else ():
        log_probs, carry = model.segment_log_probs(segment, carry)
        yield log_probs


def _update(model: Trainable, loss: Tensor, settings: DynamicEvaluation, trained: dict[str, Tensor]) -> None:
    """One step, and a little of the way back to what was trained."""
    import torch

    parameters = model.parameters()
    gradients = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
    norm = float(torch.nn.utils.get_total_norm([gradient for gradient in gradients if gradient is not None]))
    if not math.isfinite(norm):
        raise DataError(f"dynamic evaluation diverged at a rate of {settings.rate:g}; take a lower one")
    rate = settings.rate * min(1.0, settings.clip / max(norm, 1e-12))
    with torch.no_grad():
        for (name, tensor), gradient in zip(parameters.items(), gradients, strict=True):
            if gradient is not None:
                tensor.sub_(gradient, alpha=rate).lerp_(trained[name], settings.decay)


@contextmanager
def _trainable_parameters(model: Trainable) -> Iterator[dict[str, Tensor]]:
    """The parameters with gradients, and as they were afterwards, which is what is given."""
    trained = {name: tensor.detach().clone() for name, tensor in model.parameters().items()}
    for tensor in model.parameters().values():
        tensor.requires_grad_(True)
    try:
        yield trained
    finally:
        for name, tensor in model.parameters().items():
            tensor.requires_grad_(False)
            tensor.copy_(trained[name])

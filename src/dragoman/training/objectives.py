"""What training makes small."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from dragoman.text.corpus import Corpus
from dragoman.trainable import TrainableScorer

# The loss of every prediction that some examples ask for; with noise, as in training.  # -> (predictions,)
Objective = Callable[[Any, Any, Generator | None], Tensor]


def negative_log_likelihood(model: TrainableScorer, corpus: Corpus, noise: Generator | None = None) -> Tensor:
    """l = -log P(e_t | e_1 ... e_{t-1}) of every token, by the scorer's batched path.  # (tokens,)"""
    return -model.batch_log_probs(corpus, noise)


def forgetting(objective: Objective, words: NDArray[np.bool_], rate: float) -> Objective:
    """The same objective, but while training these words are now and then as unknown as any word that was never seen.

    A model that sees no unknown word while it learns gives such words next to no probability.  # words: (|V|,)
    """

    def forgetful(model: Any, corpus: Corpus, noise: Generator | None) -> Tensor:
        if noise is None:
            return objective(model, corpus, noise)
        lost = words[corpus.ids] & (torch.rand(corpus.words, generator=noise, device=noise.device) < rate).cpu().numpy()
        return objective(model, corpus.with_unknown(lost), noise)

    return forgetful


def seen_once(corpus: Corpus) -> NDArray[np.bool_]:
    """The words that a text has once.  # (|V|,)"""
    return np.bincount(corpus.ids, minlength=len(corpus.vocab)) == 1

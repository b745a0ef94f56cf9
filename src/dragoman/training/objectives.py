"""What training makes small."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Generator, Tensor

from dragoman.text.corpus import Corpus
from dragoman.trainable import TrainableScorer

# The loss of every prediction that some examples ask for; with noise, as in training.  # -> (predictions,)
Objective = Callable[[Any, Any, Generator | None], Tensor]


def negative_log_likelihood(model: TrainableScorer, corpus: Corpus, noise: Generator | None = None) -> Tensor:
    """l = -log P(e_t | e_1 ... e_{t-1}) of every token, by the scorer's batched path.  # (tokens,)"""
    return -model.batch_log_probs(corpus, noise)

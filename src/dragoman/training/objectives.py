"""What training makes small."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from dragoman.text.corpus import Corpus
from dragoman.text.streams import Segment
from dragoman.trainable import SmoothingScorer, StreamingScorer, TrainableScorer

# The loss of every prediction that some examples ask for; with noise, as in training.  # -> (predictions,)
Objective = Callable[[Any, Any, Generator | None], Tensor]
Carry = Any  # what a model remembers of the batch before: a nest of tuples of tensors, or None
CarryingObjective = Callable[[Any, Any, Generator | None, Carry], tuple[Tensor, Carry]]


def stateless(objective: Objective) -> CarryingObjective:
    """The objective of examples that have nothing to do with each other: there is nothing to carry."""
    return lambda model, examples, noise, carry: (objective(model, examples, noise), None)


def negative_log_likelihood(model: TrainableScorer, corpus: Corpus, noise: Generator | None = None) -> Tensor:
    """l = -log P(e_t | e_1 ... e_{t-1}) of every token, by the scorer's batched path.  # (tokens,)"""
    return -model.batch_log_probs(corpus, noise)


def smoothed(share: float) -> Objective:
    """The same where, while training, the right word is asked for less and all words alike a little: by this share."""

    def smooth(model: SmoothingScorer, corpus: Corpus, noise: Generator | None) -> Tensor:
        return -model.batch_log_probs(corpus, noise, share if noise is not None else 0.0)

    return smooth


def streaming(share: float = 0.0) -> CarryingObjective:
    """l = -log P(e_t | e_1 ... e_{t-1}) of every token of a segment, after what was carried over from the segment
    before; the gradient stops there (truncated back-propagation). Smoothed as above."""

    def losses(model: StreamingScorer, segment: Segment, noise: Generator | None, carry: Carry) -> tuple[Tensor, Carry]:
        log_probs, carry = model.segment_log_probs(segment, carry, noise, share if noise is not None else 0.0)
        return -log_probs, carry  # (tokens,)

    return losses


def forgetting(objective: CarryingObjective, words: NDArray[np.bool_], rate: float) -> CarryingObjective:
    """The same objective, but while training these words are now and then as unknown as any word that was never seen.

    A model that sees no unknown word while it learns gives such words next to no probability. (Of a stream, the last
    word of a segment is drawn once where it is predicted and once where it is read.)  # words: (|V|,)
    """

    def forgetful(model: Any, text: Corpus | Segment, noise: Generator | None, carry: Carry) -> tuple[Tensor, Carry]:
        if noise is None:
            return objective(model, text, noise, carry)
        drawn = torch.rand(text.ids.shape, generator=noise, device=noise.device) < rate
        return objective(model, text.with_unknown(words[text.ids] & drawn.cpu().numpy()), noise, carry)

    return forgetful


def seen_once(corpus: Corpus) -> NDArray[np.bool_]:
    """The words that a text has once.  # (|V|,)"""
    return np.bincount(corpus.ids, minlength=len(corpus.vocab)) == 1

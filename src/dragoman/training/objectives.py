"""What training makes small."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from dragoman.data.batches import Segment
from dragoman.data.corpus import Corpus, ParallelCorpus
from dragoman.data.trees import Treebank
from dragoman.data.vocabulary import UNK
from dragoman.training.protocols import SmoothingScorer, StreamingScorer, TrainableScorer

# The loss of every prediction that some examples ask for; with noise, as in training.  # -> (predictions,)
Objective = Callable[[Any, Any, Generator | None], Tensor]
Carry = Any  # what a model remembers of the batch before: a nest of tuples of tensors, or None
StatefulObjective = Callable[[Any, Any, Generator | None, Carry], tuple[Tensor, Carry]]


def stateless(objective: Objective) -> StatefulObjective:
    """The objective of examples that have nothing to do with each other: there is nothing to carry."""
    return lambda model, examples, noise, carry: (objective(model, examples, noise), None)


def negative_log_likelihood(model: TrainableScorer, corpus: Corpus, noise: Generator | None = None) -> Tensor:
    """l = -log P(e_t | e_1 ... e_{t-1}) of every token, by the scorer's batched path.  # (tokens,)"""
    return -model.batch_log_probs(corpus, noise)


def label_smoothed(share: float) -> Objective:
    """The same where, while training, the right word is asked for less and all words alike a little: by this share."""

    def smooth(model: SmoothingScorer, corpus: Corpus, noise: Generator | None) -> Tensor:
        return -model.batch_log_probs(corpus, noise, share if noise is not None else 0.0)

    return smooth


def stream_objective(share: float = 0.0) -> StatefulObjective:
    """l = -log P(e_t | e_1 ... e_{t-1}) of every token of a segment, after what was carried over from the segment
    before; the gradient stops there (truncated back-propagation). Smoothed as above."""

    def losses(model: StreamingScorer, segment: Segment, noise: Generator | None, carry: Carry) -> tuple[Tensor, Carry]:
        log_probs, carry = model.segment_log_probs(segment, carry, noise, share if noise is not None else 0.0)
        return -log_probs, carry  # (tokens,)

    return losses


@dataclass(frozen=True)
class UnknownWordReplacement:
    """Words of a text that are now and then as unknown as any word that was never seen."""

    words: NDArray[np.bool_]  # (|V|,) which of the vocabulary
    rate: float  # how often; 0: never

    def apply(self, text: Any, noise: Generator) -> Any:
        """The text with some of these words as `<unk>`."""
        if not self.rate:
            return text
        ids = _plain(text).ids
        drawn = torch.rand(ids.shape, generator=noise, device=noise.device) < self.rate
        return text.with_unknown(self.words[ids] & drawn.cpu().numpy())


def with_unknown_words(objective: StatefulObjective, what: UnknownWordReplacement) -> StatefulObjective:
    """The same objective, but while training these words are now and then unknown.

    A model that sees no unknown word while it learns gives such words next to no probability. (Of a stream, the last
    word of a segment is drawn once where it is predicted and once where it is read.)
    """
    return _where_training(objective, what.apply)


def with_unknown_words_in_pairs(
    objective: StatefulObjective, source: UnknownWordReplacement, target: UnknownWordReplacement
) -> StatefulObjective:
    """The same for pairs, each side by itself: a translator also has to read unknown words."""

    def both(pairs: ParallelCorpus, noise: Generator) -> ParallelCorpus:
        return replace(pairs, source=source.apply(pairs.source, noise), target=target.apply(pairs.target, noise))

    return _where_training(objective, both)


def _where_training(objective: StatefulObjective, change: Callable[[Any, Generator], Any]) -> StatefulObjective:
    """The objective of examples that are changed at random, where there is noise."""

    def changed(model: Any, examples: Any, noise: Generator | None, carry: Carry) -> tuple[Tensor, Carry]:
        return objective(model, examples if noise is None else change(examples, noise), noise, carry)

    return changed


def singletons(text: Corpus | Treebank) -> NDArray[np.bool_]:
    """The words that a text has once.  # (|V|,)"""
    return np.bincount(_plain(text).ids, minlength=len(text.vocab)) == 1


def has_unknown_words(text: Corpus | Treebank) -> bool:
    """Whether a text has unknown words of its own."""
    return bool((_plain(text).ids == UNK).any())


def _plain(text: Any) -> Any:
    """The words of a text, of trees those at their leaves."""
    return text.leaves if isinstance(text, Treebank) else text

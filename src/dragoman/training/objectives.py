"""Training objectives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from dragoman.core.scorer import Carry
from dragoman.data.batches import Segment
from dragoman.data.corpus import Corpus, ParallelCorpus
from dragoman.data.vocabulary import UNK
from dragoman.training.protocols import LikelihoodModel

# The loss of every prediction of some examples. In evaluation the generator is None.  # -> (predictions,)
Objective = Callable[[Any, Any, Generator | None], Tensor]
StatefulObjective = Callable[[Any, Any, Generator | None, Carry], tuple[Tensor, Carry]]


def stateless(objective: Objective) -> StatefulObjective:
    """Return the objective of examples that are independent of each other."""
    return lambda model, data, generator, carry: (objective(model, data, generator), None)


def negative_log_likelihood(model: LikelihoodModel, data: Any, generator: Generator | None = None) -> Tensor:
    """l = -log P(e_t | e_1 ... e_{t-1}) of every token, and auxiliary losses in training.  # (tokens,)"""
    return model(data, generator=generator).losses


def label_smoothed(label_smoothing: float) -> Objective:
    """Return the negative log-likelihood with label smoothing in training."""

    def losses(model: LikelihoodModel, data: Any, generator: Generator | None) -> Tensor:
        share = label_smoothing if generator is not None else 0.0
        return model(data, generator=generator, label_smoothing=share).losses

    return losses


def stream_objective(label_smoothing: float = 0.0) -> StatefulObjective:
    """Return the negative log-likelihood of segments, each after the state of the one before.

    Gradients stop between segments (truncated back-propagation).
    """

    def losses(
        model: LikelihoodModel, segment: Segment, generator: Generator | None, carry: Carry
    ) -> tuple[Tensor, Carry]:
        share = label_smoothing if generator is not None else 0.0
        output = model(segment, carry=carry, generator=generator, label_smoothing=share)
        return output.losses, output.carry

    return losses


# -- unknown words -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class UnknownWordReplacement:
    """Random replacement of some words by `<unk>`."""

    words: NDArray[np.bool_]  # (|V|,) which words
    rate: float  # share of their occurrences

    def apply(self, text: Any, generator: Generator) -> Any:
        """Return the text with some of these words replaced."""
        if not self.rate:
            return text
        ids = text.ids
        replaced = torch.rand(ids.shape, generator=generator, device=generator.device) < self.rate
        return text.with_unknown(self.words[ids] & replaced.cpu().numpy())


def with_unknown_words(objective: StatefulObjective, replacement: UnknownWordReplacement) -> StatefulObjective:
    """Return the objective with words replaced by `<unk>` in training.

    A model that sees no unknown words in training gives them almost no probability. (In a stream, the last word of a
    segment is drawn twice: where it is predicted and where it is read.)
    """
    return _with_changed_data(objective, replacement.apply)


def with_unknown_words_in_pairs(
    objective: StatefulObjective, source: UnknownWordReplacement, target: UnknownWordReplacement
) -> StatefulObjective:
    """The same for sentence pairs: a translator also has to read unknown words."""

    def replace_both(pairs: ParallelCorpus, generator: Generator) -> ParallelCorpus:
        return replace(
            pairs, source=source.apply(pairs.source, generator), target=target.apply(pairs.target, generator)
        )

    return _with_changed_data(objective, replace_both)


def _with_changed_data(objective: StatefulObjective, change: Callable[[Any, Generator], Any]) -> StatefulObjective:
    """Return the objective of examples that are changed at random in training."""

    def losses(model: Any, data: Any, generator: Generator | None, carry: Carry) -> tuple[Tensor, Carry]:
        return objective(model, data if generator is None else change(data, generator), generator, carry)

    return losses


def singletons(text: Corpus) -> NDArray[np.bool_]:
    """Return which words occur once in a text.  # (|V|,)"""
    return np.bincount(text.ids, minlength=len(text.vocab)) == 1


def has_unknown_words(text: Corpus) -> bool:
    """Return whether a text has unknown words."""
    return bool((text.ids == UNK).any())

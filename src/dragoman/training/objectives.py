"""Training objectives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor, nn

from dragoman.core.scorer import Carry
from dragoman.data.batches import Segment
from dragoman.data.corpus import Corpus, ParallelCorpus
from dragoman.data.vocabulary import UNK
from dragoman.training.protocols import CarryOutput, Examples, ExamplesT, LossOutput

ModelT = TypeVar("ModelT", bound=nn.Module)

# The loss of every prediction of some examples. In evaluation the generator is None.  # -> (predictions,)
Objective = Callable[[ModelT, ExamplesT, Generator | None], Tensor]
# The same for the model in training, with the state that is carried from batch to batch.
StatefulObjective = Callable[[Examples, Generator | None, Carry], tuple[Tensor, Carry]]

UNKNOWN_RATE = 0.5  # share of the words seen once that are replaced by <unk>


def negative_log_likelihood(
    model: Callable[..., LossOutput], data: Examples, generator: Generator | None = None, label_smoothing: float = 0.0
) -> Tensor:
    """l = -log P(e_t | e_1 ... e_{t-1}) of every token, and auxiliary losses in training.  # (tokens,)"""
    is_smoothed = label_smoothing and generator is not None  # in training only
    options = {"label_smoothing": label_smoothing} if is_smoothed else {}
    return model(data, generator=generator, **options).losses


def stateless_objective(model: ModelT, objective: Objective[ModelT, ExamplesT]) -> StatefulObjective:
    """Return the objective of examples that are independent of each other and all of one type."""
    return lambda data, generator, carry: (objective(model, data, generator), None)  # type: ignore[arg-type]


def stream_objective(model: Callable[..., CarryOutput], label_smoothing: float = 0.0) -> StatefulObjective:
    """Return the negative log-likelihood of segments, each after the state of the one before.

    Gradients stop between segments (truncated back-propagation).
    """

    def losses(segment: Examples, generator: Generator | None, carry: Carry) -> tuple[Tensor, Carry]:
        share = label_smoothing if generator is not None else 0.0
        output = model(segment, carry=carry, generator=generator, label_smoothing=share)
        return output.losses, output.carry

    return losses


@dataclass(frozen=True)
class UnknownWordReplacement:
    """Random replacement of some words by `<unk>`."""

    words: NDArray[np.bool_]  # (|V|,) which words
    rate: float  # share of their occurrences

    @classmethod
    def of_singletons(cls, text: Corpus, rate: float | None, *, closed: bool = False) -> UnknownWordReplacement:
        """Replace words that occur once; by default, if the text has no unknown words and the vocabulary is open."""
        if rate is None:
            rate = 0.0 if closed or (text.ids == UNK).any() else UNKNOWN_RATE
        return cls(np.bincount(text.ids, minlength=len(text.vocab)) == 1, rate)

    def mask(self, ids: NDArray[np.int32], generator: Generator) -> NDArray[np.bool_]:
        """Return which words of a text to replace."""
        if not self.rate:
            return np.zeros(ids.shape, bool)
        drawn = torch.rand(ids.shape, generator=generator, device=generator.device) < self.rate
        return self.words[ids] & drawn.cpu().numpy()


def with_unknown_words(
    objective: StatefulObjective, target: UnknownWordReplacement, source: UnknownWordReplacement | None = None
) -> StatefulObjective:
    """Return the objective with words replaced by `<unk>` in training, for pairs on both sides.

    A model that sees no unknown words in training gives them almost no probability, and a translator also has to read
    them. (In a stream, the last word of a segment is drawn twice: where it is predicted and where it is read.)
    """

    def losses(data: Examples, generator: Generator | None, carry: Carry) -> tuple[Tensor, Carry]:
        if generator is not None and isinstance(data, Corpus | Segment):
            data = data.with_unknown(target.mask(data.ids, generator))
        elif generator is not None and isinstance(data, ParallelCorpus) and source is not None:
            source_text = data.source.with_unknown(source.mask(data.source.ids, generator))
            target_text = data.target.with_unknown(target.mask(data.target.ids, generator))
            data = replace(data, source=source_text, target=target_text)
        return objective(data, generator, carry)

    return losses

"""In which order, and in which batches, examples are learned from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.data.batches import TextStream
from dragoman.data.ranges import split_by_size
from dragoman.training.config import TrainingConfig
from dragoman.training.protocols import Examples

PADDED = 4  # times as many places as predictions a piece may take up when its examples are padded
DEV_ROWS = 10  # a dev text is read as so many streams, or fewer if these were short
SHORTEST = 100  # words of such a stream


@dataclass(frozen=True)
class DataOrder:
    """How a text is gone through: in training, and where it is only judged."""

    epoch_batches: Callable[[Any, TrainingConfig, int], Sequence[Examples]]  # the batches of one pass, by its number
    evaluation_batches: Callable[[Any, int], Iterable[Examples]]  # all of it, in pieces of about so many predictions
    description: str  # what to call it; may name settings of training


def epoch_batches(
    sizes: NDArray[np.int64],
    batch_size: int,
    seed: int,
    epoch: int,
    *,
    by_sentences: bool = False,
    pool: int = 0,
    likeness: NDArray[np.int64] | None = None,
    weights: NDArray[np.int64] | None = None,
) -> list[NDArray[np.int64]]:
    """The numbers of all examples, shuffled as seed and epoch say, in batches of about `batch_size` predictions.

    Size 1 gives one example at a time (online training), size 0 all at once (whole-batch training). With a `pool`, the
    examples of so many batches are sorted before these are cut, so that those of a batch are alike: in size, or in what
    is given as their `sort_keys`. Examples that take up more of a batch than their predictions count by their `weights`.

    >>> [batch.tolist() for batch in epoch_batches(np.array([3, 1, 2, 2]), 4, seed=1, epoch=0)]
    [[0, 1], [2, 3]]
    >>> sizes = np.array([3, 1, 9, 2, 1, 8])
    >>> [sizes[batch].tolist() for batch in epoch_batches(sizes, 2, seed=1, epoch=0, by_sentences=True, pool=3)]
    [[1, 1], [2, 3], [8, 9]]
    >>> weights = np.array([3, 1, 9, 2])
    >>> [batch.tolist() for batch in epoch_batches(np.array([3, 1, 2, 2]), 8, seed=1, epoch=0, weights=weights)]
    [[0, 1], [2], [3]]
    """
    random = np.random.default_rng([seed, epoch])
    order = random.permutation(len(sizes))
    if not batch_size:
        return [order]
    counted = np.ones_like(sizes) if by_sentences else sizes if weights is None else weights
    if not pool:
        return list(split_by_size(order, counted, batch_size))
    pools = split_by_size(order, counted, pool * batch_size)
    alike = sizes if likeness is None else likeness
    batches = [batch for one in pools for batch in split_by_size(_sorted(one, alike), counted, batch_size)]
    return [batches[number] for number in random.permutation(len(batches))]


def _sorted(numbers: NDArray[np.int64], by: NDArray[np.int64]) -> NDArray[np.int64]:
    return numbers[np.argsort(by[numbers], kind="stable")]


class Batches(Sequence[Examples]):
    """Examples by the numbers of each batch, taken when they are asked for."""

    def __init__(self, examples: Examples, numbers: list[NDArray[np.int64]]):
        self._examples, self._numbers = examples, numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, number: Any) -> Any:
        return self._examples.select(self._numbers[number])


def _shuffled(examples: Examples, config: TrainingConfig, epoch: int) -> Sequence[Examples]:
    by_sentences = config.batch_by == "sentences"
    numbers = epoch_batches(
        *(examples.sizes, config.batch_size, config.seed, epoch),
        by_sentences=by_sentences,
        pool=config.pool,
        likeness=_likeness(examples),
        weights=batch_weights(examples),
    )
    return Batches(examples, numbers)


def _likeness(examples: Examples) -> NDArray[np.int64]:
    """By which examples are sorted; if they do not say it themselves, by their sizes."""
    likeness: NDArray[np.int64] = getattr(examples, "sort_keys", examples.sizes)
    return likeness


def memory_chunks(examples: Examples, predictions: int) -> Iterable[NDArray[np.int64]]:
    """Examples in their order, in pieces that are computed together; those with weights of their own are padded on
    another side too, which must not take up much more."""
    padded = PADDED * predictions if hasattr(examples, "weights") else None
    return split_by_size(np.arange(len(examples)), batch_weights(examples), predictions, padded)


def batch_weights(examples: Examples) -> NDArray[np.int64]:
    """How much of a batch each takes up; if they do not say it themselves, their sizes.  # (examples,)"""
    weights: NDArray[np.int64] = getattr(examples, "weights", examples.sizes)
    return weights


def _pieces(examples: Examples, predictions: int) -> Iterable[Examples]:
    """The short examples first, so that those of a piece are of like size."""
    ordered = examples.select(_sorted(np.arange(len(examples)), _likeness(examples)))
    return (ordered.select(run) for run in memory_chunks(ordered, predictions))


def _segments(corpus: Any, config: TrainingConfig, epoch: int) -> Sequence[Examples]:
    """In the text's own order, but from another word on in each epoch, so that cuts fall elsewhere."""
    start = int(np.random.default_rng([config.seed, epoch]).integers(corpus.num_tokens))
    rows = config.batch_size // config.steps if config.batch_by == "words" else config.batch_size
    return TextStream.from_corpus(corpus, max(1, min(rows, corpus.num_tokens)), config.steps, start)


def _streamed(corpus: Any, predictions: int) -> Iterable[Examples]:
    rows = max(1, min(DEV_ROWS, corpus.num_tokens // SHORTEST))
    return TextStream.from_corpus(corpus, rows, max(1, predictions // rows // 8))


SENTENCES = DataOrder(
    _shuffled, _pieces, "batches of whole sentences"
)  # examples that have nothing to do with each other
STREAM = DataOrder(
    _segments, _streamed, "as a stream, gradients {steps} words back"
)  # a text whose sentences belong together

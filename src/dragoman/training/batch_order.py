"""Order and batches of training examples."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dragoman.data.batches import Segment, TextStream
from dragoman.data.corpus import Corpus
from dragoman.data.ranges import split_by_size
from dragoman.training.config import TrainingConfig
from dragoman.training.protocols import Examples, PaddedExamples

MAX_PADDING_FACTOR = 4  # padded size of a chunk, in multiples of its predictions
EVALUATION_ROWS = 10  # parallel rows of a dev text that is read as a stream
MIN_ROW_LENGTH = 100  # words of such a row


class EpochBatches(Protocol):
    """The batches of an epoch, or the pieces of a batch, selected when they are accessed."""

    def __len__(self) -> int: ...
    def __getitem__(self, number: int, /) -> Examples: ...


class EvaluationBatches(Protocol):
    """Returns batches of about `predictions` predictions: the part of one of several processes."""

    def __call__(
        self, data: Examples, predictions: int, /, rank: int = 0, processes: int = 1
    ) -> Iterable[Examples]: ...


@dataclass(frozen=True)
class DataOrder:
    """How data is divided into batches, for training and for evaluation."""

    epoch_batches: Callable[[Examples, TrainingConfig, int], EpochBatches]  # by the number of the epoch
    pieces: Callable[[Examples, int, int], EpochBatches]  # of a batch: so many, or more if they have more predictions
    evaluation_batches: EvaluationBatches
    description: str  # may contain names of training settings


def epoch_batches(
    sizes: NDArray[np.int64],
    batch_size: int,
    seed: int,
    epoch: int,
    *,
    by_sentences: bool = False,
    pool: int = 0,
    sort_keys: NDArray[np.int64] | None = None,
    weights: NDArray[np.int64] | None = None,
) -> list[NDArray[np.int64]]:
    """Return the indices of all examples, shuffled by seed and epoch, in batches of about `batch_size` predictions.

    Args:
        sizes: Predictions of each example.
        batch_size: 1 gives one example per batch (online training), 0 all examples in one batch.
        by_sentences: Count examples instead of predictions.
        pool: Sort the examples of this many batches together, so that those of a batch are similar; 0: no sorting.
        sort_keys: Keys for sorting; default: sizes.
        weights: Sizes of the examples in a batch; default: sizes.

    >>> [batch.tolist() for batch in epoch_batches(np.array([3, 1, 2, 2]), 4, seed=1, epoch=0)]
    [[0, 1], [2, 3]]
    >>> sizes = np.array([3, 1, 9, 2, 1, 8])
    >>> [sizes[batch].tolist() for batch in epoch_batches(sizes, 2, seed=1, epoch=0, by_sentences=True, pool=3)]
    [[1, 1], [2, 3], [8, 9]]
    """
    random = np.random.default_rng([seed, epoch])
    order = random.permutation(len(sizes))
    if not batch_size:
        return [order]
    counted = np.ones_like(sizes) if by_sentences else sizes if weights is None else weights
    if not pool:
        return list(split_by_size(order, counted, batch_size))
    keys = sizes if sort_keys is None else sort_keys
    batches: list[NDArray[np.int64]] = []
    for indices in split_by_size(order, counted, pool * batch_size):
        by_key = indices[np.argsort(keys[indices], kind="stable")]
        batches += split_by_size(by_key, counted, batch_size)
    return [batches[number] for number in random.permutation(len(batches))]


@dataclass(frozen=True)
class _SelectedBatches:
    """Batches of examples, selected when they are accessed."""

    data: Examples
    indices: list[NDArray[np.int64]]

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, number: int, /) -> Examples:
        return self.data.select(self.indices[number])


def _shuffled_batches(data: Examples, config: TrainingConfig, epoch: int) -> EpochBatches:
    indices = epoch_batches(
        data.sizes,
        config.batch_size,
        config.seed,
        epoch,
        by_sentences=config.batch_by == "sentences",
        pool=config.pool,
        sort_keys=_sort_keys(data),
        weights=_weights(data),
    )
    return _SelectedBatches(data, indices)


def _sort_keys(data: Examples) -> NDArray[np.int64]:
    return data.sort_keys if isinstance(data, PaddedExamples) else data.sizes


def _weights(data: Examples) -> NDArray[np.int64]:
    return data.weights if isinstance(data, PaddedExamples) else data.sizes


def memory_chunks(
    data: Examples, predictions: int, indices: NDArray[np.int64] | None = None
) -> Iterable[NDArray[np.int64]]:
    """Return the indices of examples, or these indices, in order, in chunks that fit into memory together."""
    max_padded = MAX_PADDING_FACTOR * predictions if isinstance(data, PaddedExamples) else None
    indices = np.arange(len(data)) if indices is None else indices
    return split_by_size(indices, _weights(data), predictions, max_padded)


def _example_pieces(batch: Examples, pieces: int, predictions: int) -> EpochBatches:
    """Return neighbouring examples in pieces of about the same size, each of them in chunks that fit into memory."""
    parts = split_evenly(_weights(batch), pieces)
    return _SelectedBatches(batch, [chunk for part in parts for chunk in memory_chunks(batch, predictions, part)])


def split_evenly(sizes: NDArray[np.int64], parts: int) -> list[NDArray[np.int64]]:
    """Return the indices of examples, in order, in parts of about the same size; fewer parts if there are few examples.

    >>> [part.tolist() for part in split_evenly(np.array([3, 3, 3, 9, 1]), 2)]
    [[0, 1, 2], [3, 4]]
    >>> [part.tolist() for part in split_evenly(np.array([3, 9]), 3)]
    [[0], [1]]
    """
    ends = np.cumsum(sizes)
    middles = ends - sizes / 2
    bounds = np.searchsorted(middles, ends[-1] * np.arange(1, parts) / parts)
    return [part for part in np.split(np.arange(len(sizes)), bounds) if len(part)]


def _sorted_chunks(data: Examples, predictions: int, /, rank: int = 0, processes: int = 1) -> Iterable[Examples]:
    """Return examples from short to long, so that those of a chunk have similar sizes."""
    ordered = data.select(np.argsort(_sort_keys(data), kind="stable"))
    chunks = islice(memory_chunks(ordered, predictions), rank, None, processes)
    return (ordered.select(indices) for indices in chunks)


def _segments(corpus: Examples, config: TrainingConfig, epoch: int) -> EpochBatches:
    """Return the text in its order, from another word in each epoch, so that segments differ."""
    assert isinstance(corpus, Corpus)
    start = int(np.random.default_rng([config.seed, epoch]).integers(corpus.num_tokens))
    rows = config.batch_size // config.steps if config.batch_by == "words" else config.batch_size
    return TextStream.from_corpus(corpus, max(1, min(rows, corpus.num_tokens)), config.steps, start)


@dataclass(frozen=True)
class _RowPieces:
    """The rows of a segment in pieces of about the same size."""

    segment: Segment
    pieces: int  # at most as many as there are rows

    def __len__(self) -> int:
        return self.pieces

    def __getitem__(self, number: int, /) -> Segment:
        return self.segment if self.pieces == 1 else Segment(row_part(self.segment.ids, number, self.pieces))


def row_part(ids: NDArray[np.int32], number: int, parts: int) -> NDArray[np.int32]:
    """Return one of several parts of the rows of a stream.  # (1 + steps, rows) -> (1 + steps, rows of the part)"""
    rows = ids.shape[1]
    return ids[:, rows * number // parts : rows * (number + 1) // parts]


def _segment_pieces(segment: Examples, pieces: int, predictions: int) -> EpochBatches:
    """Return pieces of some rows each. Those of the next segment have the same rows, which continue their state."""
    assert isinstance(segment, Segment)
    return _RowPieces(segment, min(pieces, segment.ids.shape[1]))


def _evaluation_segments(
    corpus: Examples, predictions: int, /, rank: int = 0, processes: int = 1
) -> Iterable[Examples]:
    assert isinstance(corpus, Corpus)
    rows = max(1, min(EVALUATION_ROWS, corpus.num_tokens // MIN_ROW_LENGTH))
    stream = TextStream.from_corpus(corpus, rows, max(1, predictions // rows // 8))
    ids = row_part(stream.ids, rank, processes)
    return replace(stream, ids=ids) if ids.shape[1] else ()


# For examples that are independent of each other, and for a text whose sentences belong together.
SENTENCES = DataOrder(_shuffled_batches, _example_pieces, _sorted_chunks, "batches of whole sentences")
STREAM = DataOrder(_segments, _segment_pieces, _evaluation_segments, "as a stream, gradients over {steps} words")

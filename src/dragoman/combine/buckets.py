"""Buckets of contexts: the weights of a mixture can differ between them.

A bucket depends only on the words before the predicted one, so that the weights of a bucket give a distribution. Each
bucketing computes the buckets of states, and faster those of all tokens of a corpus; a test compares the two.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError, did_you_mean
from dragoman.core.scorer import Rows, State
from dragoman.data.corpus import Corpus
from dragoman.data.vocabulary import START
from dragoman.models.cache import CacheModel
from dragoman.models.language_model import LanguageModel
from dragoman.ngram.entropy import entropies
from dragoman.ngram.model import NgramModel

if TYPE_CHECKING:
    from torch import Tensor

BucketIds = NDArray[np.int64]
M = TypeVar("M", bound=LanguageModel)

MAX_ENTROPY = 10  # nats; higher entropies share a bucket
POSITION_BUCKETS = 8  # the last one begins with the 65th word
FREQUENCY_BUCKETS = 19  # the last one begins with 65,536
MAX_BUCKETS = 10_000


class Bucketing(ABC):
    """A function from contexts to buckets, for the members of one mixture.

    It may keep its own rows in the mixture's state, next to the states of the members.
    """

    labels: tuple[str, ...]  # the name of each bucket

    def start(self, rows: int) -> Rows:
        """Return the bucketing's rows before the first word."""
        return ()

    def advance(self, rows: Rows, words: Tensor) -> Rows:
        return rows

    @abstractmethod
    def buckets_of_state(self, states: Sequence[State], rows: Rows) -> BucketIds:
        """Return the bucket of each row from the states of the members.  # (rows,)"""

    @abstractmethod
    def buckets_of_corpus(self, corpus: Corpus) -> BucketIds:
        """Return the bucket of each token of a corpus.  # (tokens,)"""


class SingleBucket(Bucketing):
    """One bucket for all contexts: the weights do not depend on the context."""

    labels = ("all",)

    def __init__(self, models: Sequence[LanguageModel]):
        pass

    def start(self, rows: int) -> Rows:
        return _zeros(rows)

    def buckets_of_state(self, states: Sequence[State], rows: Rows) -> BucketIds:
        return rows.numpy()

    def buckets_of_corpus(self, corpus: Corpus) -> BucketIds:
        return np.zeros(corpus.num_tokens, np.int64)


class PositionBuckets(Bucketing):
    """The position in the sentence: first word, second, third and fourth, fifth to eighth, and so on."""

    def __init__(self, models: Sequence[LanguageModel]):
        ends = [2**k for k in range(POSITION_BUCKETS - 1)]
        self.labels = tuple(f"position {label}" for label in _range_labels([1, *(end + 1 for end in ends)]))

    def start(self, rows: int) -> Rows:
        return _zeros(rows)  # words so far

    def advance(self, rows: Rows, words: Tensor) -> Rows:
        return rows + 1

    def buckets_of_state(self, states: Sequence[State], rows: Rows) -> BucketIds:
        return _log2_buckets(rows.numpy(), POSITION_BUCKETS)

    def buckets_of_corpus(self, corpus: Corpus) -> BucketIds:
        positions = np.arange(corpus.num_tokens) - np.repeat(corpus.token_offsets[:-1], corpus.sizes)
        return _log2_buckets(positions, POSITION_BUCKETS)


class FrequencyBuckets(Bucketing):
    """The frequency of the previous word in the training text: 0, 1, 2 to 3, 4 to 7, and so on."""

    def __init__(self, models: Sequence[LanguageModel]):
        starts = [0, *(2**k for k in range(FREQUENCY_BUCKETS - 2))]
        self.labels = ("frequency of <s>", *(f"frequency {label}" for label in _range_labels(starts)))
        self.bucket_after = 1 + _log2_buckets(models[0].vocab.counts, FREQUENCY_BUCKETS - 1)  # (|V|,)
        self.bucket_after[START] = 0

    def start(self, rows: int) -> Rows:
        return _zeros(rows) + START  # the previous word

    def advance(self, rows: Rows, words: Tensor) -> Rows:
        return words

    def buckets_of_state(self, states: Sequence[State], rows: Rows) -> BucketIds:
        return self.bucket_after[rows.numpy()]

    def buckets_of_corpus(self, corpus: Corpus) -> BucketIds:
        previous = np.roll(corpus.ids_with_boundaries(starts=0), 1)
        previous[corpus.token_offsets[:-1]] = START
        return self.bucket_after[previous]


class _NgramContextBuckets(Bucketing):
    """Buckets of the contexts of the first n-gram model, whose states are nodes of its trie."""

    bucket_name: str

    def __init__(self, models: Sequence[LanguageModel]):
        self.member, self.model = _first_member(models, NgramModel, "an n-gram model", self.bucket_name)

    @abstractmethod
    def node_buckets(self, nodes: BucketIds) -> BucketIds: ...

    def buckets_of_state(self, states: Sequence[State], rows: Rows) -> BucketIds:
        context, _ = states[self.member].rows
        return self.node_buckets(context.numpy())

    def buckets_of_corpus(self, corpus: Corpus) -> BucketIds:
        nodes, inverse = np.unique(self.model.trace(corpus).context, return_inverse=True)
        return self.node_buckets(nodes.astype(np.int64))[inverse]


class NgramOrderBuckets(_NgramContextBuckets):
    """The number of last words that the first n-gram model knows as a context."""

    bucket_name = "order"

    def __init__(self, models: Sequence[LanguageModel]):
        super().__init__(models)
        self.levels = np.array(self.model.table.trie.levels)
        self.labels = tuple(f"order {words}" for words in range(max(1, self.model.table.trie.order)))

    def node_buckets(self, nodes: BucketIds) -> BucketIds:
        return np.searchsorted(self.levels, nodes, side="right") - 1


class EntropyBuckets(_NgramContextBuckets):
    """The entropy of the first n-gram model's distribution, in whole nats."""

    bucket_name = "entropy"
    labels = (*(f"entropy {nats}-{nats + 1}" for nats in range(MAX_ENTROPY)), f"entropy {MAX_ENTROPY}+")

    def node_buckets(self, nodes: BucketIds) -> BucketIds:
        return np.minimum(entropies(self.model.table, nodes), MAX_ENTROPY).astype(np.int64)


class CacheMatchBuckets(Bucketing):
    """The number of last words that the first cache holds with a word after them."""

    def __init__(self, models: Sequence[LanguageModel]):
        self.member, self.cache = _first_member(models, CacheModel, "a cache", "recent")
        self.labels = tuple(f"recent {words}" for words in range(self.cache.order))

    def buckets_of_state(self, states: Sequence[State], rows: Rows) -> BucketIds:
        history = states[self.member].rows.numpy()  # (rows, words)
        num_rows, words = history.shape
        follows = np.ones((num_rows, words), bool)  # whether a word follows the last k words, as the next word does
        matched = np.zeros(num_rows, np.int64)
        for k in range(1, min(self.cache.order, words)):
            follows[:, :k] = False
            follows[:, k:] &= history[:, :-k] == history[:, -k, None]
            matched += follows.any(axis=1)
        return matched

    def buckets_of_corpus(self, corpus: Corpus) -> BucketIds:
        tokens = corpus.ids_with_boundaries(starts=0).astype(np.int64)
        position = np.arange(len(tokens))
        string = np.zeros(len(tokens), np.int64)  # a number for the k words that end with each token
        matched = np.zeros(len(tokens) + 1, np.int64)
        for k in range(1, self.cache.order):
            shorter = np.roll(string, 1)  # undefined for the first k tokens, which no cache reaches back to
            string = np.unique(shorter * len(corpus.vocab) + tokens, return_inverse=True)[1]
            previous = _previous_position(string)
            oldest = np.maximum(0, position + 1 - self.cache.size)  # in the cache when the next word is predicted
            matched[1:] += previous - k + 1 >= oldest
        return matched[:-1]


class CrossedBuckets(Bucketing):
    """A bucket for each combination of the buckets of several bucketings."""

    def __init__(self, parts: Sequence[Bucketing]):
        self.parts = tuple(parts)
        self.shape = tuple(len(part.labels) for part in parts)
        if prod(self.shape) > MAX_BUCKETS:
            raise DataError(f"{prod(self.shape):,} buckets: too many weights to estimate; combine fewer bucketings")
        self.labels = tuple(", ".join(labels) for labels in product(*(part.labels for part in parts)))

    def start(self, rows: int) -> Rows:
        return tuple(part.start(rows) for part in self.parts)

    def advance(self, rows: Rows, words: Tensor) -> Rows:
        return tuple(part.advance(part_rows, words) for part, part_rows in zip(self.parts, rows, strict=True))

    def buckets_of_state(self, states: Sequence[State], rows: Rows) -> BucketIds:
        buckets = (part.buckets_of_state(states, part_rows) for part, part_rows in zip(self.parts, rows, strict=True))
        return np.ravel_multi_index(tuple(buckets), self.shape)

    def buckets_of_corpus(self, corpus: Corpus) -> BucketIds:
        return np.ravel_multi_index(tuple(part.buckets_of_corpus(corpus) for part in self.parts), self.shape)


NO_BUCKETS = "none"
BUCKETINGS: dict[str, Callable[[Sequence[LanguageModel]], Bucketing]] = {
    NO_BUCKETS: SingleBucket,
    "order": NgramOrderBuckets,
    "entropy": EntropyBuckets,
    "position": PositionBuckets,
    "frequency": FrequencyBuckets,
    "recent": CacheMatchBuckets,
}


def make_bucketing(name: str, models: Sequence[LanguageModel]) -> Bucketing:
    """Return the bucketing of this name for these members; `order+recent` combines two.

    >>> len(make_bucketing("position", []).labels)
    8
    """
    names = name.split("+")
    for part in names:
        if part not in BUCKETINGS:
            raise DataError(f"no buckets {part!r}; {did_you_mean(part, BUCKETINGS)}")
    if len(set(names)) < len(names):
        raise DataError(f"buckets {name!r}: a name is repeated; give each once")
    bucketings = [BUCKETINGS[part](models) for part in names]
    return bucketings[0] if len(bucketings) == 1 else CrossedBuckets(bucketings)


def _first_member(models: Sequence[LanguageModel], kind: type[M], description: str, name: str) -> tuple[int, M]:
    """Return the first member of a kind and its index."""
    for index, model in enumerate(models):
        if isinstance(model, kind):
            return index, model
    kinds = ", ".join(model.kind for model in models)
    raise DataError(
        f"buckets {name!r} need {description} among the models, which are {kinds}; add one or leave {name} out"
    )


def _zeros(rows: int) -> Tensor:
    import torch

    return torch.zeros(rows, dtype=torch.int64)


def _log2_buckets(numbers: NDArray[np.integer], buckets: int) -> BucketIds:
    """Return the number of binary digits, so that buckets are 0, 1, 2-3, 4-7, 8-15, ...; the last is unbounded.

    >>> _log2_buckets(np.array([0, 1, 2, 3, 4, 7, 8, 99]), 5).tolist()
    [0, 1, 2, 2, 3, 3, 4, 4]
    """
    return np.minimum(np.frexp(numbers)[1], buckets - 1).astype(np.int64)


def _range_labels(starts: Sequence[int]) -> list[str]:
    """Return labels of ranges, given their first numbers.

    >>> _range_labels([1, 2, 3, 5])
    ['1', '2', '3-4', '5+']
    """
    closed = [str(a) if b == a + 1 else f"{a}-{b - 1}" for a, b in zip(starts[:-1], starts[1:], strict=True)]
    return [*closed, f"{starts[-1]}+"]


def _previous_position(strings: BucketIds) -> BucketIds:
    """Return the previous position of each string, or a large negative number for the first.

    >>> _previous_position(np.array([7, 8, 7, 7])).clip(-1).tolist()
    [-1, -1, 0, 2]
    """
    previous = np.full(len(strings), np.iinfo(np.int64).min // 2)
    order = np.argsort(strings, kind="stable")
    is_repeated = strings[order[1:]] == strings[order[:-1]]
    previous[order[1:][is_repeated]] = order[:-1][is_repeated]
    return previous

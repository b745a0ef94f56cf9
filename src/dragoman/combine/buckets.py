"""Contexts put into buckets, so that a mixture can trust its members more in some contexts than in others.

A bucket is a function of the words before, never of the word predicted: so each bucket's weights make a distribution.
Every bucketing tells the bucket of a state, and faster those of all tokens of a text; a test holds one to the other.
"""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
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

MAX_ENTROPY = 10  # entropies from here on share a bucket
POSITION_BUCKETS = 8  # buckets of places in a sentence; the last one begins with the 65th word
FREQUENCY_BUCKETS = 19  # buckets of the frequency of a word; the last one begins with 65,536
MAX_BUCKETS = 10_000  # buckets; nobody has the text to fit more


class Bucketing(ABC):
    """A way to put contexts into buckets, made for the members of one mixture.

    What it must remember of the sentence besides the members' states is its own part of the mixture's state.
    """

    labels: tuple[str, ...]  # what people call each bucket

    def start(self, rows: int) -> Rows:
        """Its own part of the state before the first word."""
        return ()

    def advance(self, rows: Rows, words: Tensor) -> Rows:
        return rows

    @abstractmethod
    def buckets_of_state(self, states: Sequence[State], rows: Rows) -> BucketIds:
        """The bucket of each row, from the states of the members.  # (rows,)"""

    @abstractmethod
    def buckets_of_corpus(self, corpus: Corpus) -> BucketIds:
        """The bucket that each token of a text is predicted in.  # (tokens,)"""


class SingleBucket(Bucketing):
    """All contexts alike: the weights do not depend on the context."""

    labels = ("all",)

    def __init__(self, models: Sequence[LanguageModel]):
        pass

    def start(self, rows: int) -> Rows:
        import torch

        return torch.zeros(rows, dtype=torch.int64)

    def buckets_of_state(self, states: Sequence[State], rows: Rows) -> BucketIds:
        return rows.numpy()

    def buckets_of_corpus(self, corpus: Corpus) -> BucketIds:
        return np.zeros(corpus.num_tokens, np.int64)


class PositionBuckets(Bucketing):
    """The place in the sentence: the 1st word, the 2nd, 3rd and 4th, 5th to 8th, and so on."""

    def __init__(self, models: Sequence[LanguageModel]):
        ends = [2**k for k in range(POSITION_BUCKETS - 1)]
        self.labels = tuple(f"position {span}" for span in _range_labels([1, *(end + 1 for end in ends)]))

    def start(self, rows: int) -> Rows:
        import torch

        return torch.zeros(rows, dtype=torch.int64)  # words so far

    def advance(self, rows: Rows, words: Tensor) -> Rows:
        return rows + 1

    def buckets_of_state(self, states: Sequence[State], rows: Rows) -> BucketIds:
        return _log2_buckets(rows.numpy(), POSITION_BUCKETS)

    def buckets_of_corpus(self, corpus: Corpus) -> BucketIds:
        return _log2_buckets(
            np.arange(corpus.num_tokens) - np.repeat(corpus.token_offsets[:-1], corpus.sizes), POSITION_BUCKETS
        )


class FrequencyBuckets(Bucketing):
    """How often the training text has the word before: never, once, 2 or 3 times, 4 to 7 times, and so on."""

    def __init__(self, models: Sequence[LanguageModel]):
        starts = [0, *(2**k for k in range(FREQUENCY_BUCKETS - 2))]
        self.labels = ("frequency of <s>", *(f"frequency {span}" for span in _range_labels(starts)))
        self.bucket_after = 1 + _log2_buckets(models[0].vocab.counts, FREQUENCY_BUCKETS - 1)  # (|V|,)
        self.bucket_after[START] = 0

    def start(self, rows: int) -> Rows:
        import torch

        return torch.full((rows,), START)  # the word before

    def advance(self, rows: Rows, words: Tensor) -> Rows:
        return words

    def buckets_of_state(self, states: Sequence[State], rows: Rows) -> BucketIds:
        return self.bucket_after[rows.numpy()]

    def buckets_of_corpus(self, corpus: Corpus) -> BucketIds:
        before = np.roll(corpus.ids_with_boundaries(starts=0), 1)
        before[corpus.token_offsets[:-1]] = START
        return self.bucket_after[before]


class _NgramContextBuckets(Bucketing):
    """A bucket for each context of the first n-gram model, whose states are nodes of its trie."""

    bucket_name: str

    def __init__(self, models: Sequence[LanguageModel]):
        self.member, self.model = _first_member(models, NgramModel, "an n-gram model", self.bucket_name)

    @abstractmethod
    def node_buckets(self, nodes: BucketIds) -> BucketIds: ...

    def buckets_of_state(self, states: Sequence[State], rows: Rows) -> BucketIds:
        context, _ = states[self.member].rows
        return self.node_buckets(context.numpy())

    def buckets_of_corpus(self, corpus: Corpus) -> BucketIds:
        nodes, place = np.unique(self.model.trace(corpus).context, return_inverse=True)
        return self.node_buckets(nodes.astype(np.int64))[place]


class NgramOrderBuckets(_NgramContextBuckets):
    """How many of the last words the first n-gram model knows as a context."""

    bucket_name = "order"

    def __init__(self, models: Sequence[LanguageModel]):
        super().__init__(models)
        self.levels = np.array(self.model.table.trie.levels)
        self.labels = tuple(f"order {words}" for words in range(max(1, self.model.table.trie.order)))

    def node_buckets(self, nodes: BucketIds) -> BucketIds:
        return np.searchsorted(self.levels, nodes, side="right") - 1


class EntropyBuckets(_NgramContextBuckets):
    """How sure the first n-gram model is: the entropy of its distribution, in whole nats."""

    bucket_name = "entropy"
    labels = (*(f"entropy {nats}-{nats + 1}" for nats in range(MAX_ENTROPY)), f"entropy {MAX_ENTROPY}+")

    def node_buckets(self, nodes: BucketIds) -> BucketIds:
        return np.minimum(entropies(self.model.table, nodes), MAX_ENTROPY).astype(np.int64)


class CacheMatchBuckets(Bucketing):
    """How many of the last words the first cache holds with a word after them: what it can say more than unigrams."""

    def __init__(self, models: Sequence[LanguageModel]):
        self.member, self.cache = _first_member(models, CacheModel, "a cache", "recent")
        self.labels = tuple(f"recent {words}" for words in range(self.cache.order))

    def buckets_of_state(self, states: Sequence[State], bucketing_rows: Rows) -> BucketIds:
        history = states[self.member].rows.numpy()  # (rows, words)
        rows, words = history.shape
        follows = np.ones((rows, words), bool)  # whether a word has the last k words before it, as the next one has
        known = np.zeros(rows, np.int64)
        for k in range(1, min(self.cache.order, words)):
            follows[:, :k] = False
            follows[:, k:] &= history[:, :-k] == history[:, -k, None]
            known += follows.any(axis=1)
        return known

    def buckets_of_corpus(self, corpus: Corpus) -> BucketIds:
        tokens = corpus.ids_with_boundaries(starts=0).astype(np.int64)
        place = np.arange(len(tokens))
        string = np.zeros(len(tokens), np.int64)  # the number of the k words that end with each token
        known = np.zeros(len(tokens) + 1, np.int64)
        for k in range(1, self.cache.order):
            shorter = np.roll(string, 1)  # makes no sense before there are k words, where no cache reaches back to
            string = np.unique(shorter * len(corpus.vocab) + tokens, return_inverse=True)[1]
            before = _previous_position(string)
            oldest = np.maximum(0, place + 1 - self.cache.size)  # what the cache holds when the next one is predicted
            known[1:] += before - k + 1 >= oldest
        return known[:-1]


class CrossedBuckets(Bucketing):
    """A bucket for each combination of the buckets of several ways."""

    def __init__(self, parts: Sequence[Bucketing]):
        self.parts = tuple(parts)
        self.shape = tuple(len(part.labels) for part in parts)
        if prod(self.shape) > MAX_BUCKETS:
            raise DataError(f"{prod(self.shape):,} buckets: no text can fit so many weights; cross fewer of them")
        self.labels = tuple(", ".join(labels) for labels in product(*(part.labels for part in parts)))

    def start(self, rows: int) -> Rows:
        return tuple(part.start(rows) for part in self.parts)

    def advance(self, rows: Rows, words: Tensor) -> Rows:
        return tuple(part.advance(mine, words) for part, mine in zip(self.parts, rows, strict=True))

    def buckets_of_state(self, states: Sequence[State], rows: Rows) -> BucketIds:
        return self._joint([part.buckets_of_state(states, mine) for part, mine in zip(self.parts, rows, strict=True)])

    def buckets_of_corpus(self, corpus: Corpus) -> BucketIds:
        return self._joint([part.buckets_of_corpus(corpus) for part in self.parts])

    def _joint(self, numbers: list[BucketIds]) -> BucketIds:
        return np.ravel_multi_index(tuple(numbers), self.shape)


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
    """The bucketing of this name for these members; `order+recent` crosses two.

    >>> len(bucketing("position", []).labels)
    8
    """
    parts = str(name).split("+")
    for part in parts:
        if part not in BUCKETINGS:
            near = difflib.get_close_matches(part, BUCKETINGS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(BUCKETINGS)}"
            raise DataError(f"no buckets {part!r}; {hint}")
    if len(set(parts)) < len(parts):
        raise DataError(f"buckets {name!r}: each can be crossed with others, not with itself; name it once")
    made = [BUCKETINGS[part](models) for part in parts]
    return made[0] if len(made) == 1 else CrossedBuckets(made)


# -- steps -------------------------------------------------------------------------------------------------------


def _first_member(models: Sequence[LanguageModel], kind: type[M], called: str, name: str) -> tuple[int, M]:
    """The first member of a kind, and its number."""
    for number, model in enumerate(models):
        if isinstance(model, kind):
            return number, model
    there = ", ".join(model.kind for model in models)
    raise DataError(f"buckets {name!r} need {called} among the models, which are {there}; add one or leave {name} out")


def _log2_buckets(numbers: NDArray[Any], buckets: int) -> BucketIds:
    """0, 1, 2-3, 4-7, 8-15 and so on: how many binary digits a number has; the last bucket holds all above.

    >>> _doublings(np.array([0, 1, 2, 3, 4, 7, 8, 99]), 5).tolist()
    [0, 1, 2, 2, 3, 3, 4, 4]
    """
    return np.minimum(np.frexp(numbers)[1], buckets - 1).astype(np.int64)


def _range_labels(starts: Sequence[int]) -> list[str]:
    """Spans of numbers by where each begins.

    >>> _spans([1, 2, 3, 5])
    ['1', '2', '3-4', '5+']
    """
    closed = [str(a) if b == a + 1 else f"{a}-{b - 1}" for a, b in zip(starts[:-1], starts[1:], strict=True)]
    return [*closed, f"{starts[-1]}+"]


def _previous_position(strings: BucketIds) -> BucketIds:
    """Where each string stood the last time before; far below 0 if it is new.

    >>> _place_before(np.array([7, 8, 7, 7])).clip(-1).tolist()
    [-1, -1, 0, 2]
    """
    before = np.full(len(strings), np.iinfo(np.int64).min // 2)
    order = np.argsort(strings, kind="stable")
    again = strings[order[1:]] == strings[order[:-1]]
    before[order[1:][again]] = order[:-1][again]
    return before

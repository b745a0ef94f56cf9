"""The weights of a log-linear model: which there are, where they are stored, and how features find them.

The tutorial's W has a column for each feature. Columns are stored in one of three ways. `seen`: a weight for each next
word seen with the feature in training, as in maximum-entropy toolkits. `full`: a weight for every word. `hashed`: a
weight for every word, in windows of one table of bounded size, which may overlap (Mikolov et al. 2011). A full column
is a window that overlaps no other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.core.kernels import kernel
from dragoman.data.corpus import Corpus
from dragoman.data.ranges import sum_ranges
from dragoman.data.vocabulary import START, Vocab
from dragoman.models.loglinear.config import MAX_HASH_BITS, LogLinearConfig
from dragoman.models.loglinear.features import (
    FeatureOccurrences,
    FeatureTemplate,
    ValueTables,
    WordHistories,
    combine_hashes,
)

MAX_AUTO_WEIGHTS = 1 << 22  # of full columns chosen automatically: more are slow to train
MAX_WEIGHTS = 1 << MAX_HASH_BITS
NO_WINDOW = -1
NOT_FOUND = -1
CHUNK_TOKENS = 1 << 17  # when features are counted


class ActiveFeatures(NamedTuple):
    """The features of each prediction: those of prediction t are begin[t]:begin[t + 1]."""

    begin: NDArray[np.int64]  # (predictions + 1,)
    feature: NDArray[np.int32]  # (active features,) column of W
    value: NDArray[np.float64]  # (active features,) x_j


@dataclass(frozen=True)
class FeatureIndex:
    """A hash table with open addressing from 64-bit keys to feature ids, faster than binary search."""

    keys: NDArray[np.uint64]  # (features,)
    slots: NDArray[np.int32]  # (power of two,) indices of `keys`, or NOT_FOUND

    @classmethod
    def build(cls, keys: NDArray[np.uint64]) -> Self:
        slots = np.full(1 << max(1, 2 * len(keys)).bit_length(), NOT_FOUND, np.int32)  # at most half full
        if not _fill(keys, slots):
            raise ValueError("a feature has two ids")
        return cls(keys, slots)

    def find(self, keys: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Return the id of each key, or NOT_FOUND."""
        ids = np.empty(len(keys), np.int32)
        _find(self.keys, self.slots, keys, ids)
        return ids


@kernel
def _slot(keys: Any, slots: Any, key: Any) -> Any:
    """Return the slot of a key, or the empty slot where it belongs."""
    slot = np.int64(key & np.uint64(slots.size - 1))
    while slots[slot] != NOT_FOUND and keys[slots[slot]] != key:
        slot = (slot + 1) & (slots.size - 1)
    return slot


@kernel
def _fill(keys: Any, slots: Any) -> bool:
    for index in range(keys.size):
        slot = _slot(keys, slots, keys[index])
        if slots[slot] != NOT_FOUND:
            return False
        slots[slot] = index
    return True


@kernel
def _find(keys: Any, slots: Any, queries: Any, ids: Any) -> None:
    for index in range(queries.size):
        ids[index] = slots[_slot(keys, slots, queries[index])]


@dataclass(frozen=True)
class FeatureExtractor:
    """Turns histories into active features."""

    vocab: Vocab
    templates: tuple[FeatureTemplate, ...]
    tables: ValueTables
    index: FeatureIndex

    @property
    def context_length(self) -> int | None:
        """The number of previous words that the templates use; None for the whole sentence."""
        lengths = [template.context_length for template in self.templates]
        return None if None in lengths else max(length for length in lengths if length is not None)

    def extract(self, history: WordHistories) -> ActiveFeatures:
        """Return the features that have weights, in the order of the templates."""
        by_template = [template.extract(history, self.tables, self.vocab) for template in self.templates]
        occurrences = FeatureOccurrences(*(np.concatenate(parts) for parts in zip(*by_template, strict=True)))
        ids = self.index.find(occurrences.key)
        known = ids != NOT_FOUND
        prediction = occurrences.prediction[known]
        order = np.argsort(prediction, kind="stable")
        begin = np.concatenate([[0], np.cumsum(np.bincount(prediction, minlength=len(history)))])
        return ActiveFeatures(begin, ids[known][order], occurrences.value[known][order])


@dataclass(frozen=True)
class FeatureCounts:
    """The features of a corpus and their counts with each next word."""

    key: NDArray[np.uint64]  # (features,) increasing
    template: NDArray[np.int64]  # (features,) index of the template
    begin: NDArray[np.int64]  # (features + 1,) the pairs of each feature
    word: NDArray[np.int32]  # (pairs,)
    count: NDArray[np.int64]  # (pairs,)


def count_features(corpus: Corpus, templates: tuple[FeatureTemplate, ...], tables: ValueTables) -> FeatureCounts:
    """Count features and next words, chunk by chunk."""
    if not corpus.num_tokens:
        raise DataError("the training text is empty, and a log-linear model takes its features from it")
    size, parts = len(corpus.vocab), []
    for chunk in corpus.chunks(CHUNK_TOKENS):
        history, target = WordHistories.from_corpus(chunk), chunk.ids_with_boundaries(starts=0)
        for index, template in enumerate(templates):
            occurrences = template.extract(history, tables, corpus.vocab)
            keys, key_ids = np.unique(occurrences.key, return_inverse=True)
            pairs, count = np.unique(key_ids * size + target[occurrences.prediction], return_counts=True)
            parts.append((keys[pairs // size], np.full(len(pairs), index), pairs % size, count))
    key, of_template, word, count = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    keys, first, feature_ids = np.unique(key, return_index=True, return_inverse=True)
    pairs, pair_ids = np.unique(feature_ids * size + word, return_inverse=True)
    feature, word = np.divmod(pairs, size)
    begin = np.searchsorted(feature, np.arange(len(keys) + 1))
    counts = np.bincount(pair_ids, count, len(pairs)).astype(np.int64)
    return FeatureCounts(keys, of_template[first], begin, word.astype(np.int32), counts)


class WeightLayout(NamedTuple):
    """The columns of W: feature j has the pairs begin[j]:begin[j + 1] and, if window_start[j] >= 0, a window."""

    begin: NDArray[np.int64]  # (features + 1,)
    word: NDArray[np.int32]  # (pairs,) the next word, increasing within each feature
    window_start: NDArray[np.int64]  # (features,) start of the window of |V| weights, or NO_WINDOW


@dataclass(frozen=True)
class WeightPlan:
    """The features that have weights, and the layout of the weights."""

    key: NDArray[np.uint64]  # (features,)
    layout: WeightLayout
    windows: int  # number of weights in all windows
    note: str = ""  # what was decided automatically, for the user


def plan_weights(
    corpus: Corpus, templates: tuple[FeatureTemplate, ...], tables: ValueTables, settings: LogLinearConfig
) -> WeightPlan:
    """Count the features of a corpus and choose the storage of each feature's column."""
    counts, vocab_size = count_features(corpus, templates, tables), len(corpus.vocab)
    windowed, note = _has_window(counts, templates, vocab_size, settings)
    retained_pairs = (counts.count >= settings.min_seen) & ~np.repeat(windowed, np.diff(counts.begin))
    sizes = np.diff(np.concatenate([[0], np.cumsum(retained_pairs)])[counts.begin])  # pairs of each feature
    retained = windowed | (sizes > 0)
    begin = np.concatenate([[0], np.cumsum(sizes[retained])]).astype(np.int64)
    window_start = np.full(len(counts.key), NO_WINDOW, np.int64)
    window_start[windowed], windows = _window_starts(counts.key[windowed], vocab_size, settings)
    layout = WeightLayout(begin, counts.word[retained_pairs], window_start[retained])
    return WeightPlan(counts.key[retained], layout, windows, note)


def _has_window(
    counts: FeatureCounts, templates: tuple[FeatureTemplate, ...], vocab_size: int, settings: LogLinearConfig
) -> tuple[NDArray[np.bool_], str]:
    """Return which features have a window, and a note for the user.

    With `auto`, features of single words have windows unless that needs too many weights.
    """
    frequent = sum_ranges(counts.begin, counts.count) >= settings.min_seen
    if settings.weights in ("full", "hashed"):
        return frequent, ""
    is_unigram = np.array([template.is_unigram for template in templates])
    candidates = frequent & is_unigram[counts.template]
    needed = int(candidates.sum()) * vocab_size
    if settings.weights == "auto" and needed <= MAX_AUTO_WEIGHTS:
        return candidates, ""
    note = f"full columns of single words would need {needed:,} weights; only pairs seen in training have weights"
    return np.zeros_like(frequent), note if settings.weights == "auto" else ""


def _window_starts(
    keys: NDArray[np.uint64], vocab_size: int, settings: LogLinearConfig
) -> tuple[NDArray[np.int64], int]:
    """Return the start of each feature's window, and the number of weights in all windows."""
    if settings.weights == "hashed" and len(keys):
        size = 1 << settings.hash_bits
        if size < vocab_size:
            problem = f"a column of {vocab_size:,} weights does not fit; choose {vocab_size.bit_length()} or more"
            raise DataError(f"hash_bits {settings.hash_bits}: {problem}")
        hashes = combine_hashes(keys, np.zeros(len(keys), np.int64))
        return (hashes % np.uint64(size - vocab_size + 1)).astype(np.int64), size
    size = len(keys) * vocab_size
    if size > MAX_WEIGHTS:
        raise DataError(f"{len(keys):,} full columns of {vocab_size:,} weights are too many; choose seen or hashed")
    return np.arange(len(keys)) * vocab_size, size


def check_layout(layout: WeightLayout, windows: int, vocab_size: int, features: int, pairs: int) -> None:
    """Raise ValueError if a layout read from a file is not valid: the kernels do not check their indices."""
    begin, word, start = layout
    _require(begin.dtype == np.int64 and word.dtype == np.int32 and start.dtype == np.int64, "arrays of a wrong type")
    _require(begin.shape == (features + 1,) and start.shape == (features,), "not one column for each feature")
    _require(word.shape == (pairs,), "not one weight for each pair")
    _require(begin[0] == 0 and begin[-1] == pairs and bool(np.all(np.diff(begin) >= 0)), "columns out of order")
    _require(pairs == 0 or bool(word.min() > START and word.max() < vocab_size), "pairs with words that do not exist")
    increasing = np.ones(pairs, bool)
    increasing[1:] = word[1:] > word[:-1]
    increasing[begin[:-1][begin[:-1] < pairs]] = True
    _require(bool(increasing.all()), "a column's words out of order")
    inside = (start >= NO_WINDOW) & ((start == NO_WINDOW) | (start <= windows - vocab_size))
    _require(bool(inside.all()), "windows outside their table")


def _require(condition: bool | np.bool_, problem: str) -> None:
    if not condition:
        raise ValueError(problem)

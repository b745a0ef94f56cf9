"""Which weights there are, and where: a column of the tutorial's W for every feature, kept in one of three ways.

`seen`: a weight for each next word that the feature was seen with in training, and for no other, as maximum-entropy
toolkits do. `full`: a weight for every word, the tutorial's W. `hashed`: the same, but columns are windows of one table
of bounded size and may overlap (Mikolov et al. 2011). A full column is a window that overlaps no other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.core.kernels import kernel
from dragoman.data.corpus import Corpus
from dragoman.data.vocabulary import START, Vocab
from dragoman.models.loglinear.config import MAX_HASH_BITS, LogLinearConfig
from dragoman.models.loglinear.features import (
    FeatureOccurrences,
    FeatureTemplate,
    ValueTable,
    WordHistories,
    combine_hashes,
)

MAX_AUTO_WEIGHTS = 1 << 22  # weights that full columns may take up when nobody asked for them: more are slow to train
MAX_WEIGHTS = 1 << MAX_HASH_BITS
NO_WINDOW = -1  # the place of a feature that has no window
CHUNK_TOKENS = 1 << 17  # while features are counted


class ActiveFeatures(NamedTuple):
    """The features that are on at each prediction: those of prediction t stand from begin[t] to begin[t + 1]."""

    begin: NDArray[np.int64]  # (predictions + 1,)
    feature: NDArray[np.int32]  # (active features,)
    value: NDArray[np.float64]  # (active features,) x_j


class WeightLayout(NamedTuple):
    """The columns of W. Feature j has the pairs from begin[j] to begin[j + 1] and, if place[j] >= 0, a window."""

    begin: NDArray[np.int64]  # (features + 1,)
    word: NDArray[np.int32]  # (pairs,) the next word, increasing within each feature
    window_start: NDArray[np.int64]  # (features,) where the window of |V| weights starts


@dataclass(frozen=True)
class FeatureExtractor:
    """What turns histories into active features: the features, the values of words, and the features' numbers."""

    vocab: Vocab
    templates: tuple[FeatureTemplate, ...]
    tables: Mapping[str, ValueTable]  # by the name of the atom
    index: FeatureIndex

    @property
    def context_length(self) -> int | None:
        """How many words back the features look; None: to the beginning of the sentence."""
        reaches = [feature.context_length for feature in self.templates]
        return None if None in reaches else max(reach for reach in reaches if reach is not None)

    def extract(self, history: WordHistories) -> ActiveFeatures:
        found = [feature.extract(history, self.tables, self.vocab) for feature in self.templates]
        together = FeatureOccurrences(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
        number = self.index.find(together.key)
        known = number != NOT_FOUND
        prediction = together.prediction[known]
        order = np.argsort(prediction, kind="stable")  # features stay in the order in which they were given
        begin = np.concatenate([[0], np.cumsum(np.bincount(prediction, minlength=len(history)))])
        return ActiveFeatures(begin, number[known][order], together.value[known][order])


# -- counting --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FeatureCounts:
    """Which features a text has, and how often each came with which next word."""

    key: NDArray[np.uint64]  # (features,) increasing
    template: NDArray[np.int64]  # (features,) which of the given features it is an instance of
    begin: NDArray[np.int64]  # (features + 1,) its next words
    word: NDArray[np.int32]  # (pairs,)
    count: NDArray[np.int64]  # (pairs,)

    @property
    def of_feature(self) -> NDArray[np.int64]:
        """How often each feature came.  # (features,)"""
        return np.add.reduceat(self.count, self.begin[:-1]) if len(self.key) else np.zeros(0, np.int64)


def count_features(
    corpus: Corpus, features: tuple[FeatureTemplate, ...], tables: Mapping[str, ValueTable]
) -> FeatureCounts:
    """Look over a text piece by piece; what differs between pieces is only ever added up."""
    if not corpus.num_tokens:
        raise DataError("a log-linear model has the features of its training text, and that is empty")
    parts = [part for piece in corpus.chunks(CHUNK_TOKENS) for part in _count_piece(piece, features, tables)]
    key = np.concatenate([part.key for part in parts])
    word = np.concatenate([part.word for part in parts])
    count = np.concatenate([part.count for part in parts])
    source = np.concatenate([part.source for part in parts])
    keys, first, number = np.unique(key, return_index=True, return_inverse=True)
    pairs, place = np.unique(number * len(corpus.vocab) + word, return_inverse=True)
    feature, word = np.divmod(pairs, len(corpus.vocab))
    begin = np.searchsorted(feature, np.arange(len(keys) + 1))
    counts = np.bincount(place, count, len(pairs)).astype(np.int64)
    return FeatureCounts(keys, source[first], begin, word.astype(np.int32), counts)


@dataclass(frozen=True)
class _PairCounts:
    """The pairs of feature and next word that a stretch of text has."""

    key: NDArray[np.uint64]  # (pairs,)
    source: NDArray[np.int64]  # (pairs,)
    word: NDArray[np.int64]  # (pairs,)
    count: NDArray[np.int64]  # (pairs,)


def _count_piece(
    corpus: Corpus, features: tuple[FeatureTemplate, ...], tables: Mapping[str, ValueTable]
) -> list[_PairCounts]:
    """The pairs of each feature."""
    history, target = WordHistories.from_corpus(corpus), corpus.ids_with_boundaries(starts=0)
    parts = []
    for source, feature in enumerate(features):
        found = feature.extract(history, tables, corpus.vocab)
        keys, number = np.unique(found.key, return_inverse=True)
        pairs, count = np.unique(number * len(corpus.vocab) + target[found.prediction], return_counts=True)
        number, word = np.divmod(pairs, len(corpus.vocab))
        parts.append(_PairCounts(keys[number], np.full(len(pairs), source), word, count))
    return parts


# -- laying out ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WeightPlan:
    """The features that have weights, where the weights are, and how many there are."""

    key: NDArray[np.uint64]  # (features,)
    layout: WeightLayout
    windows: int  # weights in windows, together
    note: str = ""  # what had to be decided


def plan_weights(
    counts: FeatureCounts, features: tuple[FeatureTemplate, ...], vocab_size: int, settings: LogLinearConfig
) -> WeightPlan:
    """Give each feature its column, in the way that was chosen."""
    windowed, note = _has_window(counts, features, vocab_size, settings)
    kept_pair = (counts.count >= settings.min_seen) & ~np.repeat(windowed, np.diff(counts.begin))
    sizes = np.diff(np.concatenate([[0], np.cumsum(kept_pair)])[counts.begin])  # pairs of each feature
    kept = windowed | (sizes > 0)
    begin = np.concatenate([[0], np.cumsum(sizes[kept])]).astype(np.int64)
    place = np.full(len(counts.key), NO_WINDOW, np.int64)
    place[windowed], windows = _window_starts(counts.key[windowed], vocab_size, settings)
    return WeightPlan(counts.key[kept], WeightLayout(begin, counts.word[kept_pair], place[kept]), windows, note)


def _has_window(
    counts: FeatureCounts, features: tuple[FeatureTemplate, ...], vocab_size: int, settings: LogLinearConfig
) -> tuple[NDArray[np.bool_], str]:
    """Which features have a window; and what there is to say about it.

    Without a choice, those of single words have one, as long as these are not too many.
    """
    enough = counts.of_feature >= settings.min_seen
    if settings.weights in ("full", "hashed"):
        return enough, ""
    single = np.array([feature.is_unigram for feature in features])
    wanted = enough & single[counts.template]
    needed = int(wanted.sum()) * vocab_size
    if settings.weights == "auto" and needed <= MAX_AUTO_WEIGHTS:
        return wanted, ""
    note = f"{needed:,} weights would be needed for full columns of single words; those of pairs not seen were left out"
    return np.zeros_like(enough), note if settings.weights == "auto" else ""


def _window_starts(
    keys: NDArray[np.uint64], vocab_size: int, settings: LogLinearConfig
) -> tuple[NDArray[np.int64], int]:
    """Where the window of each of these features starts, and how many weights all windows take up."""
    if settings.weights == "hashed" and len(keys):
        size = 1 << settings.hash_bits
        if size < vocab_size:
            remedy = f"choose {vocab_size.bit_length()} or more"
            raise DataError(
                f"hash_bits {settings.hash_bits}: a column of {vocab_size:,} weights does not fit; {remedy}"
            )
        return (combine_hashes(keys, np.zeros(len(keys), np.int64)) % np.uint64(size - vocab_size + 1)).astype(
            np.int64
        ), size
    size = len(keys) * vocab_size
    if size > MAX_WEIGHTS:
        raise DataError(f"{len(keys):,} full columns of {vocab_size:,} weights are too many; choose seen or hashed")
    return np.arange(len(keys)) * vocab_size, size


def check_layout(layout: WeightLayout, windows: int, vocab_size: int, features: int, pairs: int) -> None:
    """Raise ValueError if these are not what training writes: kernels trust their arrays blindly."""
    begin, word, place = layout
    _require(begin.dtype == np.int64 and word.dtype == np.int32 and place.dtype == np.int64, "tables of another kind")
    _require(begin.shape == (features + 1,) and place.shape == (features,), "not one column for each feature")
    _require(word.shape == (pairs,), "not one weight for each pair")
    _require(begin[0] == 0 and begin[-1] == pairs and bool(np.all(np.diff(begin) >= 0)), "columns out of order")
    _require(pairs == 0 or bool(word.min() > START and word.max() < vocab_size), "pairs with words that do not exist")
    new = np.ones(pairs, bool)
    new[1:] = word[1:] > word[:-1]
    new[begin[:-1][begin[:-1] < pairs]] = True
    _require(bool(new.all()), "a column's words out of order")
    inside = (place >= NO_WINDOW) & ((place == NO_WINDOW) | (place <= windows - vocab_size))
    _require(bool(inside.all()), "windows outside their table")


def _require(condition: bool | np.bool_, problem: str) -> None:
    if not condition:
        raise ValueError(problem)


NOT_FOUND = -1


@dataclass(frozen=True)
class FeatureIndex:
    """The place of each key in an array of keys. Binary search would miss the processor's cache at every step."""

    keys: NDArray[np.uint64]  # (features,)
    slots: NDArray[np.int32]  # (a power of two,) places in `keys`, or NOT_FOUND

    @classmethod
    def build(cls, keys: NDArray[np.uint64]) -> Self:
        size = 1 << max(1, 2 * len(keys)).bit_length()  # at most half full, so that searches are short and end
        slots = np.full(size, NOT_FOUND, np.int32)
        if not _fill(keys, slots):
            raise ValueError("a feature has two numbers")
        return cls(keys, slots)

    def find(self, keys: NDArray[np.uint64]) -> NDArray[np.int32]:
        """The number of each key, or NOT_FOUND."""
        found = np.empty(len(keys), np.int32)
        _find(self.keys, self.slots, keys, found)
        return found


@kernel
def _slot(keys: Any, slots: Any, key: Any) -> Any:
    """Where a key is, or the empty slot where it would go."""
    slot = np.int64(key & np.uint64(slots.size - 1))
    while slots[slot] != NOT_FOUND and keys[slots[slot]] != key:
        slot = (slot + 1) & (slots.size - 1)
    return slot


@kernel
def _fill(keys: Any, slots: Any) -> bool:
    for number in range(keys.size):
        slot = _slot(keys, slots, keys[number])
        if slots[slot] != NOT_FOUND:
            return False
        slots[slot] = number
    return True


@kernel
def _find(keys: Any, slots: Any, wanted: Any, found: Any) -> None:
    for place in range(wanted.size):
        found[place] = slots[_slot(keys, slots, wanted[place])]

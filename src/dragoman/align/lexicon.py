"""A translation lexicon: P(e | f) of words that occur together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.align.pair_grid import NULL
from dragoman.data.vocabulary import SPECIALS, UNK, Vocab

UNSEEN_PROB = 1e-9  # P(e | f) of words that never occurred together, where a positive number is needed


class LexiconEntry(NamedTuple):
    word: str
    prob: float


@dataclass(frozen=True, eq=False)
class Lexicon:
    """For each source word, and for NULL, its possible translations."""

    source: Vocab
    target: Vocab
    keys: NDArray[np.int64]  # (entries,) source * |V_e| + target, sorted
    probs: NDArray[np.float64]  # (entries,) P(target | source)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where the entries of each source word begin.  # (|V_f| + 1,)"""
        return np.searchsorted(self.keys, np.arange(len(self.source) + 1, dtype=np.int64) * len(self.target))

    def prob(self, source: str, target: str) -> float:
        """Return P(target | source), 0 if the words never occurred together."""
        source_id, target_id = _known_id(self.source, source), _known_id(self.target, target)
        if source_id is None or target_id is None:
            return 0.0
        return float(self.probs_for(np.array([source_id * len(self.target) + target_id]))[0])

    def translations(self, source: str | None, k: int | None = 10) -> list[LexiconEntry]:
        """Return the k most probable translations of a word (None: of NULL), most probable first."""
        source_id = NULL if source is None else _known_id(self.source, source)
        if source_id is None:
            return []
        first, last = self.starts[source_id : source_id + 2].tolist()
        order = first + np.argsort(-self.probs[first:last], kind="stable")[:k]
        words = self.target.tokens
        return [LexiconEntry(words[int(self.keys[n]) % len(words)], float(self.probs[n])) for n in order]

    def top_entries(self, k: int, min_prob: float = 0.0) -> NDArray[np.int64]:
        """Return the indices, in order, of each source word's k most probable entries of at least `min_prob`."""
        sources, targets = np.divmod(self.keys, len(self.target))
        order = np.lexsort((targets, -self.probs, sources))  # most probable of each source word first
        rank = np.arange(len(order)) - self.starts[sources[order]]
        return np.sort(order[(rank < k) & (self.probs[order] >= min_prob)])

    def keys_above(self, min_prob: float) -> NDArray[np.int64]:
        """Return the keys of entries of at least `min_prob`, without those of NULL."""
        return np.asarray(self.keys[(self.probs >= min_prob) & (self.keys >= (NULL + 1) * len(self.target))])

    def probs_for(self, keys: NDArray[np.int64], unseen: float = 0.0) -> NDArray[np.float64]:
        """Return P of each key, `unseen` for words that never occurred together.  # (keys,)"""
        if not len(self.keys):
            return np.full(len(keys), unseen)
        indices = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[indices] == keys, self.probs[indices], unseen)


def _known_id(vocab: Vocab, word: str) -> int | None:
    word_id = vocab.id(word)
    return None if word_id == UNK and word != SPECIALS[UNK] else word_id


def reversed_keys(keys: NDArray[np.int64], lexicon: Lexicon) -> NDArray[np.int64]:
    """Return the keys that the word pairs of this lexicon have in one of the opposite direction.  # (keys,)"""
    source, target = np.divmod(keys, len(lexicon.target))
    return target * len(lexicon.source) + source

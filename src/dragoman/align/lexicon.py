"""A translation lexicon: P(e | f) of words that were seen together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.align.pair_grid import NULL
from dragoman.data.vocabulary import SPECIALS, UNK, Vocab

UNSEEN_PROB = 1e-9  # P(e | f) of words never seen together, where some number is needed


class LexiconEntry(NamedTuple):
    word: str
    prob: float


@dataclass(frozen=True, eq=False)
class Lexicon:
    """For each source word, and for the empty one, the target words that it may be translated to."""

    source: Vocab
    target: Vocab
    keys: NDArray[np.int64]  # (entries,) source * |V_e| + target, growing
    probs: NDArray[np.float64]  # (entries,) P(target | source)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where the entries of each source word begin.  # (|V_f| + 1,)"""
        return np.searchsorted(self.keys, np.arange(len(self.source) + 1, dtype=np.int64) * len(self.target))

    def prob(self, source: str, target: str) -> float:
        """P(target | source), 0 if they were never seen together."""
        one, other = self._id(self.source, source), self._id(self.target, target)
        if one is None or other is None:
            return 0.0
        return float(self.probs_for(np.array([one * len(self.target) + other]))[0])

    def translations(self, source: str | None, k: int | None = 10) -> list[LexiconEntry]:
        """The k likeliest translations of a word (None: of the empty word), likeliest first."""
        number = NULL if source is None else self._id(self.source, source)
        if number is None:
            return []
        first, last = self.starts[number : number + 2].tolist()
        order = first + np.argsort(-self.probs[first:last], kind="stable")[:k]
        words = self.target.tokens
        return [LexiconEntry(words[int(self.keys[place]) % len(words)], float(self.probs[place])) for place in order]

    def best_translations(self) -> NDArray[np.int32]:
        """The likeliest translation of each source word; `<unk>` where none is known.  # (|V_f|,)"""
        found = np.full(len(self.source), UNK, np.int32)
        order = np.lexsort((-self.probs, self.keys // len(self.target)))
        owners = self.keys[order] // len(self.target)
        firsts = np.flatnonzero(np.diff(owners, prepend=-1))
        found[owners[firsts]] = self.keys[order[firsts]] % len(self.target)
        return found

    def top_entries(self, k: int, min_prob: float = 0.0) -> NDArray[np.int64]:
        """The entries of the likeliest translations of each source word, that are so probable at least, in order."""
        owner, target = np.divmod(self.keys, len(self.target))
        order = np.lexsort((target, -self.probs, owner))  # the likeliest of each source word first
        rank = np.arange(len(order)) - self.starts[owner[order]]
        return np.sort(order[(rank < k) & (self.probs[order] >= min_prob)])

    def keys_above(self, min_prob: float) -> NDArray[np.int64]:
        """The entries of this probability or more, the empty word's left out."""
        kept: NDArray[np.int64] = self.keys[(self.probs >= min_prob) & (self.keys >= (NULL + 1) * len(self.target))]
        return kept

    def probs_for(self, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        """P of the pairs of words with these numbers, 0 of those never seen together.  # (keys,)"""
        found: NDArray[np.float64] = np.append(self.probs, 0.0)[self.entry_indices(keys)]
        return found

    @staticmethod
    def _id(vocab: Vocab, word: str) -> int | None:
        number = vocab.id(word)
        return None if number == UNK and word != SPECIALS[UNK] else number

    def entry_indices(self, keys: NDArray[np.int64]) -> NDArray[np.int32]:
        """The entry of each key; one past the last for keys that have none.  # (keys,)"""
        if not len(self.keys):
            return np.zeros(len(keys), np.int32)
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[places] == keys, places, len(self.keys)).astype(np.int32)


def reversed_keys(keys: NDArray[np.int64], lexicon: Lexicon) -> NDArray[np.int64]:
    """The numbers that pairs of words of this lexicon have in one of the other direction.  # (keys,)"""
    source, target = np.divmod(keys, len(lexicon.target))
    return target * len(lexicon.source) + source

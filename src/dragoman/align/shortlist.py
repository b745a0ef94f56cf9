"""The words that a translator may predict for a source sentence, by a translation lexicon (Jean et al. 2015)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.align.lexicon import Lexicon
from dragoman.align.pair_grid import NULL
from dragoman.core.errors import DataError
from dragoman.core.types import Arrays
from dragoman.data.corpus import Corpus
from dragoman.data.vocabulary import END, START, UNK, Vocab

FREQUENT_WORDS = 100  # most frequent target words, allowed in every sentence
TRANSLATIONS_PER_WORD = 10  # most probable translations of each source word

ARRAY_TYPES = {"starts": np.int32, "translations": np.int32, "always_allowed": np.bool_}  # as they are stored


@dataclass(frozen=True, eq=False)
class Shortlist:
    """The target words that each source word allows."""

    starts: Tensor  # (|V_f| + 1,) first index in `translations` for each source word
    translations: Tensor  # (entries,)
    always_allowed: Tensor  # (|V_e|,) whether a word is allowed in every sentence
    coverage: float = 1.0  # share of source words, by frequency, that have translations

    @classmethod
    def from_lexicon(
        cls,
        lexicon: Lexicon,
        source: Vocab,
        target: Vocab,
        frequent_words: int = FREQUENT_WORDS,
        translations_per_word: int = TRANSLATIONS_PER_WORD,
    ) -> Self:
        """Return the shortlist for a translator with these vocabularies; those of the lexicon may differ.

        A source word also allows the target word that is written like it.
        """
        if frequent_words < 0 or translations_per_word < 0:
            numbers = f"{frequent_words} frequent words and {translations_per_word} translations per word"
            raise DataError(f"a shortlist of {numbers}: both must be 0 or more")
        lexicon_source, lexicon_target = np.divmod(
            lexicon.keys[lexicon.top_entries(translations_per_word)], len(lexicon.target)
        )
        target_ids = target.ids(lexicon.target.tokens)[lexicon_target]
        always_allowed = np.zeros(len(target), bool)
        most_frequent = np.argsort(-target.counts[UNK + 1 :], kind="stable")[:frequent_words]
        always_allowed[most_frequent + UNK + 1] = True
        always_allowed[target_ids[lexicon_source == NULL]] = True
        always_allowed[[START, END, UNK]] = False, True, True
        source_ids = source.ids(lexicon.source.tokens)[lexicon_source]
        is_known = (source_ids != UNK) & (target_ids != UNK)
        source_ids, target_ids = source_ids[is_known], target_ids[is_known]
        counts = source.counts[UNK + 1 :]
        is_covered = np.bincount(source_ids, minlength=len(source))[UNK + 1 :] > 0
        coverage = float(counts[is_covered].sum() / counts.sum()) if counts.any() else 1.0
        same = target.ids(source.tokens)  # names and their parts are copied
        copied = UNK + 1 + np.flatnonzero(same[UNK + 1 :] > UNK)
        keys = np.union1d(source_ids.astype(np.int64) * len(target) + target_ids, copied * len(target) + same[copied])
        source_ids, target_ids = np.divmod(keys, len(target))
        starts = np.searchsorted(source_ids, np.arange(len(source) + 1))
        return cls(*_tensors(starts, target_ids), torch.from_numpy(always_allowed), coverage)

    def allowed_words(self, source: Corpus) -> Tensor:
        """Return which words are allowed in the translation of each sentence.  # (sentences, |V_e|)"""
        ids = torch.from_numpy(source.ids.astype(np.int64))
        sentence = torch.from_numpy(np.repeat(np.arange(len(source)), np.diff(source.offsets)))
        sizes = self.starts[ids + 1] - self.starts[ids]  # (source words,)
        first = torch.repeat_interleave(self.starts[ids] - (sizes.cumsum(0) - sizes), sizes)
        allowed = self.always_allowed.repeat(len(source), 1)
        allowed[torch.repeat_interleave(sentence, sizes), self.translations[first + torch.arange(len(first))]] = True
        return allowed

    def word_lists(self, source: Corpus) -> Tensor:
        """Return the ids of the words that each sentence allows, in order, padded with `<s>`.  # (sentences, n)"""
        allowed = self.allowed_words(source)
        sizes = allowed.sum(dim=1)  # (sentences,)
        sentence, words = allowed.nonzero(as_tuple=True)  # (entries,) each
        place = torch.arange(len(words)) - (sizes.cumsum(0) - sizes)[sentence]
        lists = torch.full((len(source), int(sizes.max())), START)
        lists[sentence, place] = words
        return lists

    def arrays(self) -> Arrays:
        """Return what is stored of a shortlist."""
        return {
            "starts": self.starts.numpy().astype(np.int32),
            "translations": self.translations.numpy().astype(np.int32),
            "always_allowed": self.always_allowed.numpy(),
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays, source: Vocab, target: Vocab) -> Self:
        """Return a stored shortlist, after checking that it fits these vocabularies."""
        if {name: array.dtype for name, array in arrays.items()} != ARRAY_TYPES:
            raise ValueError("the shortlist has other arrays")
        starts, translations, always_allowed = (arrays[name] for name in ARRAY_TYPES)
        if starts.shape != (len(source) + 1,) or translations.ndim != 1 or always_allowed.shape != (len(target),):
            raise ValueError("the shortlist does not fit its vocabularies")
        if starts[0] != 0 or (np.diff(starts) < 0).any() or starts[-1] != len(translations):
            raise ValueError("the shortlist has words without translations")
        if ((translations <= UNK) | (translations >= len(target))).any():
            raise ValueError("the shortlist has words outside the vocabulary")
        if always_allowed[[START, END, UNK]].tolist() != [False, True, True]:
            raise ValueError("the shortlist does not allow the end of a sentence")
        return cls(*_tensors(starts, translations), torch.from_numpy(np.array(always_allowed)))


def _tensors(starts: NDArray[np.integer], translations: NDArray[np.integer]) -> tuple[Tensor, Tensor]:
    """Return the indices and words of a shortlist as tensors."""
    return torch.from_numpy(starts.astype(np.int64)), torch.from_numpy(translations.astype(np.int64))

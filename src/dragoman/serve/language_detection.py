"""Which language a text is in, of those that the translators read and write: by sequences of three letters, as the
words of their vocabularies have them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from dragoman.data.vocabulary import SPECIALS, Vocab
from dragoman.data.words import SPACE_MARK, split_words

LETTERS = 3
MOST_WORDS = 20_000  # of a vocabulary, the most frequent first


class LanguageGuess(NamedTuple):
    language: str
    confidence: float  # from 0 to 100


@dataclass(frozen=True)
class TrigramProfile:
    """How often sequences of letters come in a language."""

    counts: Mapping[str, float]
    total: float

    @classmethod
    def of(cls, vocabs: Iterable[Vocab]) -> TrigramProfile:
        """Of words, each as often as it was seen; pieces of words are words that begin or end within one."""
        counts: dict[str, float] = defaultdict(float)
        for vocab in vocabs:
            for word, times in list(zip(vocab.tokens, vocab.counts.tolist(), strict=True))[:MOST_WORDS]:
                if word not in SPECIALS:
                    for letters in letter_trigrams(
                        word.replace(SPACE_MARK, " ") if SPACE_MARK in word else f" {word} "
                    ):
                        counts[letters] += math.sqrt(max(1, times))  # frequent words would say everything
        return cls(counts, sum(counts.values()))

    def log_prob(self, text: str, kinds: int) -> float:
        """log P of the sequences of a text, if there are so many kinds of them."""
        found = (sequence for word in split_words(text) for sequence in letter_trigrams(f" {word} "))
        return sum(math.log((self.counts.get(one, 0.0) + 0.5) / (self.total + 0.5 * kinds)) for one in found)


def letter_trigrams(word: str) -> list[str]:
    """
    >>> sequences(" Ab ")
    [' ab', 'ab ']
    """
    lower = word.lower()
    return [lower[at : at + LETTERS] for at in range(max(1, len(lower) - LETTERS + 1))]


def identify_language(text: str, profiles: Mapping[str, TrigramProfile]) -> list[LanguageGuess]:
    """The languages, the likeliest first; none of a text without letters, or if no language is known."""
    if not profiles or not any(map(str.isalpha, text)):
        return []
    kinds = len({letters for profile in profiles.values() for letters in profile.counts})
    scores = {language: profile.log_prob(text, kinds) for language, profile in profiles.items()}
    best = max(scores.values())
    weights = {language: math.exp(score - best) for language, score in scores.items()}
    total = sum(weights.values())
    found = [LanguageGuess(language, round(100 * weight / total, 1)) for language, weight in weights.items()]
    return sorted(found, key=lambda one: -one.confidence)

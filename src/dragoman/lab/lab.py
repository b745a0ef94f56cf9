"""The lab: sentence pairs sampled from the German-English grammar, and their exact probabilities."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.data.corpus import Corpus
from dragoman.lab.corpus_files import SPLITS
from dragoman.lab.derivation import (
    AnnotatedSentence,
    Derivation,
    DerivationSampler,
    realize,
    realize_words,
    word_alignment,
)
from dragoman.lab.grammar import ENGLISH, GERMAN, LANGUAGES, Grammar
from dragoman.lab.inside import MonolingualGrammar, inside_log_probs, inside_log_probs_with_spelling
from dragoman.lab.probabilities import DerivationScorer, PairEntropy, PairLogProbs, pair_entropy
from dragoman.lab.sentence_rules import german_english_grammar


@dataclass(frozen=True, slots=True)
class SentencePair:
    """A German sentence F and an English sentence E from one derivation."""

    german: AnnotatedSentence
    english: AnnotatedSentence
    alignment: list[tuple[int, int]]  # German and English positions, from 0
    log_probs: PairLogProbs


class Lab:
    """Samples sentences from a synchronous grammar and computes their probabilities."""

    def __init__(self, grammar: Grammar):
        self.grammar = grammar
        self._scorer = DerivationScorer(grammar)
        self._monolingual: dict[int, MonolingualGrammar] = {}  # compiled on first use, by language

    @cached_property
    def _sampler(self) -> DerivationSampler:
        return DerivationSampler(self.grammar)

    @cached_property
    def entropy(self) -> PairEntropy:
        return pair_entropy(self.grammar)

    def derivations(self, count: int, seed: int, split: str = "train") -> Iterator[Derivation]:
        """Sample derivations. Every split and seed has its own sequence; a larger `count` extends it."""
        if split not in SPLITS:
            raise DataError(f"split {split!r}: the lab's corpus has {', '.join(SPLITS)}")
        uniform = random.Random(f"{seed} {split}").random
        return (self._sampler.sample(uniform) for _ in range(count))

    def pairs(self, count: int, seed: int, split: str = "train") -> Iterator[SentencePair]:
        """Sample sentence pairs with trees, alignment and probabilities."""
        return map(self.pair, self.derivations(count, seed, split))

    def pair(self, derivation: Derivation) -> SentencePair:
        german, english = realize(derivation, GERMAN), realize(derivation, ENGLISH)
        return SentencePair(german, english, word_alignment(german, english), self._scorer.log_probs(derivation))

    def sentences(self, language: str, count: int, seed: int, split: str = "train") -> list[str]:
        """Return one language of the sampled pairs, `de` or `en`, as tokenised sentences."""
        index = language_index(language)
        return [" ".join(realize_words(derivation, index)) for derivation in self.derivations(count, seed, split)]

    def log_probs(self, language: str, corpus: Corpus) -> NDArray[np.float64]:
        """Return the exact log P of each sentence; all words outside the corpus' vocabulary are the word `<unk>`."""
        return inside_log_probs(self._monolingual_grammar(language), corpus)

    def log_probs_with_spelling(self, language: str, corpus: Corpus) -> NDArray[np.float64]:
        """Return the exact log P of each sentence with the spelling of unknown words."""
        return inside_log_probs_with_spelling(self._monolingual_grammar(language), corpus.sentences_as_text())

    def _monolingual_grammar(self, language: str) -> MonolingualGrammar:
        index = language_index(language)
        if index not in self._monolingual:
            self._monolingual[index] = MonolingualGrammar.project(self.grammar, index)
        return self._monolingual[index]


def language_index(language: str) -> int:
    """Return the index of a language by its code."""
    if language not in LANGUAGES:
        raise DataError(f"language {language!r}: the lab has {' and '.join(LANGUAGES)}")
    return LANGUAGES[language]


@cache
def german_english_lab() -> Lab:
    """Return the lab of the German-English grammar."""
    return Lab(german_english_grammar())

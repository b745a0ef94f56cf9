"""The laboratory: pairs of sentences, and the truth about them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.data.corpus import Corpus
from dragoman.lab.exact import Entropy, Exact, LogProbs, entropy
from dragoman.lab.german_english import grammar
from dragoman.lab.inside import inside, inside_full
from dragoman.lab.meaning import Meanings, Node, Said, alignment, say, words_of
from dragoman.lab.side_grammar import SideGrammar
from dragoman.lab.synchronous import ENGLISH, GERMAN, SIDES, Grammar

PARTS = ("train", "dev", "test")  # each is drawn for itself


@dataclass(frozen=True, slots=True)
class Pair:
    """A meaning, said in German (F) and in English (E)."""

    german: Said
    english: Said
    alignment: list[tuple[int, int]]  # places in German and English, from 0
    log_probs: LogProbs


@dataclass(frozen=True)
class Laboratory:
    """A grammar and what can be asked of it."""

    grammar: Grammar = field(repr=False)

    @cached_property
    def _meanings(self) -> Meanings:
        return Meanings(self.grammar)

    @cached_property
    def _exact(self) -> Exact:
        return Exact(self.grammar)

    @cached_property
    def entropy(self) -> Entropy:
        return entropy(self.grammar)

    @cached_property
    def _german(self) -> SideGrammar:
        return SideGrammar.of(self.grammar, GERMAN)

    @cached_property
    def _english(self) -> SideGrammar:
        return SideGrammar.of(self.grammar, ENGLISH)

    def meanings(self, count: int, seed: int, part: str = "train") -> Iterator[Node]:
        """Meanings of one part; each part and seed has its own, and more of them begin with the same ones."""
        if part not in PARTS:
            raise DataError(f"no part {part!r} of the laboratory's corpus: there are {', '.join(PARTS)}")
        uniform = random.Random(f"{seed} {part}").random
        return (self._meanings.draw(uniform) for _ in repeat(None, count))

    def pairs(self, count: int, seed: int, part: str = "train") -> Iterator[Pair]:
        """Pairs of sentences with their trees, alignment and probabilities."""
        return map(self.pair, self.meanings(count, seed, part))

    def pair(self, meaning: Node) -> Pair:
        german, english = say(meaning, GERMAN), say(meaning, ENGLISH)
        return Pair(german, english, alignment(german, english), self._exact.log_probs(meaning))

    def text(self, language: str, count: int, seed: int, part: str = "train") -> list[str]:
        """One side of the pairs, `de` or `en`, as plain sentences."""
        side = side_of(language)
        return [" ".join(words_of(meaning, side)) for meaning in self.meanings(count, seed, part)]

    def log_probs(self, language: str, corpus: Corpus) -> NDArray[np.float64]:
        """The true log P of each sentence, where words outside the corpus' vocabulary are one word, `<unk>`."""
        return inside(self._side(language), corpus)

    def log_probs_spelled(self, language: str, corpus: Corpus) -> NDArray[np.float64]:
        """The true log P of each sentence, every word spelled out."""
        return inside_full(self._side(language), corpus.sentences_as_text())

    def _side(self, language: str) -> SideGrammar:
        return self._german if side_of(language) == GERMAN else self._english


def side_of(language: str) -> int:
    """German or English, by the language's short name."""
    if language not in SIDES:
        raise DataError(f"language {language!r}: the laboratory speaks {' and '.join(SIDES)}")
    return SIDES[language]


@cache
def laboratory() -> Laboratory:
    """The one of German and English."""
    return Laboratory(grammar())

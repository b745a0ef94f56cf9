"""What each word of a text costs by several models, side by side: its surprisal -log2 P(e_t | e_1 ... e_{t-1}), bits.

A word that a model expects costs little, a word that it gives one chance in a thousand costs ten bits. Each model reads
the text with its own vocabulary; words outside it are paid for in full, so that the numbers can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.core.scorer import Scorer
from dragoman.data.corpus import Corpus
from dragoman.data.vocabulary import END, SPECIALS
from dragoman.evaluation.likelihood import token_scores


class ScorerInput(NamedTuple):
    """A text as one model reads it: by its own vocabulary."""

    scorer: Scorer
    corpus: Corpus


class SentenceSurprisals(NamedTuple):
    """What the words of one sentence and its `</s>` cost."""

    words: tuple[str, ...]
    bits: NDArray[np.float64]  # (words + 1, models)


@dataclass(frozen=True, eq=False)
class SurprisalTable:
    """The surprisal of every word, and of the `</s>` after every sentence, by every model."""

    models: tuple[str, ...]
    words: tuple[str, ...]  # (tokens,) as they are spelled in the text
    bits: NDArray[np.float64]  # (tokens, models) infinite where a word cannot occur
    offsets: NDArray[np.int64]  # (sentences + 1,) where each sentence starts among the tokens

    @property
    def sentences(self) -> Iterator[SentenceSurprisals]:
        """One sentence after the other."""
        for first, last in pairwise(self.offsets.tolist()):
            yield SentenceSurprisals(self.words[first:last], self.bits[first:last])


def surprisals(models: Mapping[str, Scorer], sentences: str | Iterable[str]) -> SurprisalTable:
    """The surprisal of each word of some sentences, which are one text, by models that each have a name.

    >>> from dragoman import NgramModel
    >>> train = Corpus.from_sentences(["a b", "a c"])
    >>> bigrams = NgramModel.train(train, order=2, smoothing="maximum-likelihood")
    >>> unigrams = NgramModel.train(train, order=1, smoothing="maximum-likelihood")
    >>> found = surprisals({"one": unigrams, "two": bigrams}, "a b")
    >>> found.words, found.bits.round(2).tolist()
    (('a', 'b', '</s>'), [[1.58, 0.0], [2.58, 1.0], [1.58, 0.0]])
    """
    lines = [sentences] if isinstance(sentences, str) else list(sentences)
    return surprisal_table(
        {name: ScorerInput(one, Corpus.from_sentences(lines, one.vocab)) for name, one in models.items()}
    )


def surprisal_table(inputs: Mapping[str, ScorerInput]) -> SurprisalTable:
    """The same of one text that each model has read already."""
    if not inputs:
        raise DataError("there is no model to ask; give at least one")
    corpora = [reading.corpus for reading in inputs.values()]
    words = _words(corpora[0])
    if any(_words(other) != words for other in corpora[1:] if other is not corpora[0]):
        raise DataError("the models have read different texts; let all read the same one")
    bits = [_bits(reading) for reading in inputs.values()]
    return SurprisalTable(tuple(inputs), words, np.stack(bits, axis=1), corpora[0].token_offsets)


def _bits(reading: ScorerInput) -> NDArray[np.float64]:
    """-log2 P of each token.  # (tokens,)"""
    return token_scores(*reading).full_log_probs / -math.log(2) + 0.0  # what is certain costs 0, not -0


def _words(corpus: Corpus) -> tuple[str, ...]:
    """The words as they are spelled, and `</s>` after each sentence."""
    lines = corpus.sentences_as_text()
    return tuple(word for line in lines for word in (*(line.split(" ") if line else ()), SPECIALS[END]))
